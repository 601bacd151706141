"""Every fault that is tried, over every transport that can have it."""

import socket
from collections.abc import Mapping
from typing import Any

from tests.faults import checks
from tests.faults.case import Case, Cell, Transport
from tests.faults.subtle import SUBTLE
from tests.faults.variants import EVENTS, HTTP, NETWORK, ONE_HTTP, PATIENT, SSE, STDIO, STREAMS, WEBSOCKET, each

NO_SERVERS = {
    "echoes": ("cat", []),
    "repeats": ("yes", []),
    "repeats_brackets": ("yes", ["[INFO] up"]),
    "repeats_requests": ("yes", ['{"jsonrpc": "2.0", "id": 1, "method": "ping"}']),
    "repeats_errors": ("yes", ['{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}']),
    "zeros": ("cat", ["/dev/zero"]),
    "random": ("cat", ["/dev/urandom"]),
    "sleeps": ("sleep", ["1000"]),
    "only_floods_stderr": ("sh", ["-c", "yes >&2"]),
    "kills_its_group": ("sh", ["-c", "kill -9 0"]),
}
"""Commands that are there and speak no MCP."""


def _command(command: str, **more: Any) -> Any:
    def entry(_: Transport) -> Mapping[str, Any]:
        return {"command": command, **more}

    return entry


def _nobody_listens(transport: Transport) -> Mapping[str, Any]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    scheme = "ws" if transport == "websocket" else "http"
    return {"transport": "http" if transport == "json" else transport, "url": f"{scheme}://127.0.0.1:{port}/"}


START: list[Case] = [
    Case(fault="behaves", row=0, answers="ok"),
    Case(fault="behaves", row=0, answers="ok", era="modern"),
    Case(
        fault="command_not_found",
        row=1,
        over=STDIO,
        connects=False,
        says="not found",
        entry=_command("no-such-program"),
    ),
    Case(
        fault="command_not_executable",
        row=1,
        over=STDIO,
        connects=False,
        says="not executable",
        entry=_command(__file__),
    ),
    Case(
        fault="command_is_a_folder",
        row=1,
        over=STDIO,
        connects=False,
        says="does not exist|folder",
        entry=_command("/tmp"),
    ),
    Case(
        fault="folder_not_found",
        row=1,
        over=STDIO,
        connects=False,
        says="folder",
        entry=_command("python3", cwd="/no/such"),
    ),
    *(
        Case(
            fault="no_server",
            argument=name,
            row=9,
            over=STDIO,
            connects=False,
            entry=_command(command, args=args),
        )
        for name, (command, args) in NO_SERVERS.items()
    ),
    Case(fault="nobody_listens", row=2, over=NETWORK, connects=False, says="refused", entry=_nobody_listens),
    *each("exits_at_start", "1 0 77", row=2, over=STDIO, connects=False, says="(?s)exited with code.*database"),
    Case(fault="killed_at_start", row=2, over=STDIO, connects=False, says="SIGSEGV"),
    Case(fault="dies_after_initialize", row=3, connects=False),
    Case(fault="hangs_at_start", row=4, connects=False, says="did not answer|no answer|in time"),
    Case(fault="hangs_in_list", row=4, connects=False, says="did not answer|no answer|in time"),
    Case(fault="slow_start", row=5, answers="ok", settings={"startup_timeout": 4.0}),
    Case(fault="ignores_discover", row=6, answers="ok", check=checks.remembered),
    Case(fault="exits_on_unknown_method", row=6, answers="ok", over=STREAMS),
    Case(fault="discover_lies", row=7, answers="either", connects=False, says=""),
    Case(
        fault="old_version",
        row=7,
        connects=False,
        says="2024-11-05.*min_protocol",
        settings={"min_protocol": "2025-06-18"},
    ),
    *each("wrong_version", "unknown number missing", row=8, connects=False),
    *each("bad_initialize", "error", row=9, connects=False, says="licence"),
    *each("bad_initialize", "null text empty no_capabilities neither wrong_id null_id no_id", row=9, connects=False),
    Case(fault="instructions_10_mb", row=9, answers="ok", settings={"startup_timeout": 5.0}),
]

NOISE: list[Case] = [
    *each(
        "stdout_banner",
        "text many bytes ansi long",
        row=10,
        over=STREAMS,
        answers="ok",
        check=checks.noise_is_counted,
        settings=PATIENT | {"startup_timeout": 10.0, "timeout": 6.0},
    ),
    Case(fault="stdout_banner", argument="text", row=10, over=ONE_HTTP, connects=False),
    Case(fault="prefixed_answer", row=10, over=EVENTS, answers="error"),
    Case(fault="two_answers_in_one_line", row=24, over=EVENTS, at_once=True),
    Case(fault="closes_output", row=11, over=STREAMS, then="returns", at_once=True),
    Case(fault="stderr_flood", row=12, over=STDIO, answers="ok", settings=PATIENT),
    Case(fault="stderr_flood_at_start", row=12, over=STDIO, answers="ok", settings={"startup_timeout": 6.0}),
]

CALLS: list[Case] = [
    Case(fault="crashes_mid_call", row=13, then="returns", at_once=True, check=checks.one_effect),
    Case(fault="crashes_mid_call", argument="signal", row=13, over=STDIO, then="returns", at_once=True, says="SIGKILL"),
    Case(fault="side_effect_then_crash", row=14, then="returns", at_once=True, check=checks.one_effect),
    Case(fault="exits_with_half_a_line", row=13, then="returns", at_once=True),
    Case(fault="hangs_in_call", row=15, says="did not answer within 1.5 s", check=checks.told_to_stop),
    Case(
        fault="hangs_in_call",
        row=15,
        era="modern",
        over=("stdio", "websocket", "http"),
        says="did not answer within 1.5 s",
    ),
    Case(fault="hangs_with_progress", row=16, over=EVENTS, says="did not answer", then="nothing"),
    Case(fault="slow_drip", row=17, over=("stdio", "sse", "http", "json"), says="did not answer", then="nothing"),
    Case(fault="late_answer", row=18, over=STREAMS, says="did not answer", check=checks.late_is_counted),
    Case(fault="stops_reading", row=37, over=("stdio", "websocket"), says="did not answer", then="nothing"),
    Case(
        fault="never_reads",
        row=37,
        over=("stdio", "websocket"),
        says="did not answer",
        then="nothing",
        arguments={"big": "x" * 2_000_000},
    ),
    Case(
        fault="cpu_spin",
        row=38,
        over=STDIO,
        says="did not answer",
        then="returns",
        recovery=10.0,
        check=checks.replaced,
    ),
    Case(
        fault="cpu_spin",
        row=38,
        over=STDIO,
        era="modern",
        says="did not answer",
        then="returns",
        recovery=10.0,
        check=checks.replaced,
    ),
    Case(
        fault="stops_itself",
        row=38,
        over=STDIO,
        says="did not answer",
        then="returns",
        recovery=10.0,
        check=checks.replaced,
    ),
]

SIZES: list[Case] = [
    *each("large_answer", "2 9", row=46, answers="ok", settings=PATIENT),
    *each("large_answer", "11 100", row=19, says="too large|larger than|limit", settings=PATIENT, then="returns"),
    Case(fault="large_error", argument="9", row=46, says="eee", settings=PATIENT),
    Case(
        fault="large_error", argument="20", row=19, says="too large|larger than|limit", settings=PATIENT, then="returns"
    ),
    Case(fault="large_image", row=19, says="too large|larger than|limit", settings=PATIENT, then="returns"),
    Case(fault="endless_line", row=20, settings=PATIENT, then="returns"),
    Case(fault="endless_line_at_start", row=20, connects=False),
    *each("many_blocks", "20000 300000", row=21, says="too many", settings=PATIENT),
    *each("many_blocks", "9000", row=21, answers="ok", settings=PATIENT),
    Case(fault="many_numbers", row=21, answers="either", settings=PATIENT),
    Case(fault="many_keys", row=21, answers="either", settings=PATIENT),
    *each("deep_json", "150", row=23, answers="ok", check=checks.valid_json),
    *each("deep_json", "900 100000", row=23, says="deep|too many", at_once=True),
    Case(fault="deep_arrays", row=23, at_once=True),
]

ANSWERS: list[Case] = [
    Case(fault="batch_answer", row=24, at_once=True, says="batch"),
    Case(fault="batch_answer", argument="notified", row=24, at_once=True, says="batch"),
    *each(
        "unparsable_answer",
        "no_jsonrpc old_jsonrpc number_jsonrpc truncated trailing_comma single_quotes comment trailing_garbage control_character raw_tab bad_escape",
        row=24,
        at_once=True,
    ),
    *each("unparsable_answer", "braces_only brackets_only capitals", row=24, at_once=True),
    Case(fault="unparsable_answer", argument="utf16", row=24, then="returns"),
    Case(fault="unparsable_answer", argument="method_too", row=24, at_once=True),
    Case(fault="no_id_to_read", row=24, at_once=True),
    Case(fault="pretty_printed", row=24, over=STDIO, at_once=True),
    Case(fault="pretty_printed", row=24, over=NETWORK, answers="ok"),
    Case(fault="bom_and_crlf", row=24, answers="ok"),
    Case(fault="huge_integer", row=24, at_once=True),
    Case(fault="huge_float", row=26, answers="ok", check=checks.valid_json),
    Case(fault="odd_numbers", row=26, answers="ok", check=checks.valid_json),
    *each(
        "odd_text",
        "invalid_utf8 encoded_surrogate overlong",
        row=25,
        answers="ok",
        says="done",
        check=checks.valid_json,
    ),
    *each(
        "odd_text",
        "lone_surrogate reversed_surrogates nul line_separator ansi",
        row=26,
        answers="ok",
        says="done",
        check=checks.valid_json,
    ),
    Case(fault="duplicate_answer", row=27, over=EVENTS, answers="ok", says="^first$"),
    Case(fault="answers_before_asked", row=27, over=EVENTS, answers="ok", says="^done$"),
    *each("wrong_id", "null true list object", row=24, at_once=True),
    *each("wrong_id", "other float text", row=27, answers="either"),
    Case(fault="id_as_text", row=27, answers="ok"),
    *each("duplicate_keys", "result id inner", row=28, at_once=True, says="twice"),
    *each(
        "bad_outcome",
        "both neither result_text result_list result_null error_text error_null error_empty error_code_text error_message_object error_huge_code",
        row=28,
        at_once=True,
    ),
    *each("structured_output", "mismatch missing list null", row=29, says="done", check=checks.keeps_text),
    *each(
        "hostile_schema",
        "regex key_regex exponential unique",
        row=30,
        answers="either",
        settings=PATIENT,
        check=checks.still_serves,
    ),
    *each(
        "hostile_schema", "recursive mutual bad_regex no_schema remote file", row=30, answers="either", settings=PATIENT
    ),
    *each(
        "odd_content",
        "unknown_type no_type type_is_list bad_base64 text_is_number text_is_null block_is_null block_is_list resource_without_uri link_without_uri",
        row=31,
        answers="ok",
        says="(?s)done.*left out",
    ),
    *each("odd_content", "not_a_list an_object null empty number", row=31, answers="ok"),
    Case(fault="empty_result", row=31, answers="ok"),
    Case(fault="error_flag_is_text", row=31, answers="ok", says="done"),
]

LISTS: list[Case] = [
    *each(
        "endless_pages",
        "new repeated blank",
        row=32,
        answers="ok",
        check=checks.bounded_pages,
        settings={"startup_timeout": 5.0},
    ),
    *each("endless_pages", "number empty", row=32, answers="ok", check=checks.bounded_pages),
    Case(fault="endless_pages", argument="huge", row=32, answers="ok"),
    Case(fault="slow_pages", row=32, answers="either", connects=False),
    *each("second_page_fails", "error garbage", row=32, answers="ok"),
    Case(
        fault="second_page_fails",
        argument="hang",
        row=32,
        answers="ok",
        settings={"timeout": 1.0, "startup_timeout": 4.0},
    ),
    *each(
        "large_list",
        "tools description schema deep",
        row=33,
        answers="ok",
        check=checks.bounded_tools,
        settings={"startup_timeout": 6.0},
    ),
    Case(fault="large_list", argument="name", row=33, answers="ok", check=checks.good_tools_only),
    Case(
        fault="large_list",
        argument="twenty_mb",
        row=33,
        connects=False,
        says="large|limit",
        settings={"startup_timeout": 6.0},
    ),
    *each(
        "bad_tool",
        "null text no_name empty_name name_number no_schema schema_null schema_text schema_array schema_types properties_list property_text required_text recursive output_text annotations_list description_number duplicate",
        row=34,
        answers="ok",
        check=checks.good_tools_only,
    ),
    *each("bad_list", "missing null object text", row=34, answers="either", then="nothing"),
    Case(fault="bad_list", argument="error", row=34, connects=False, says="holiday"),
    Case(fault="hostile_text", row=34, says="tool 'act': .*red", over=STREAMS, check=checks.nothing_unseen),
]

UNASKED: list[Case] = [
    Case(fault="list_changed_storm", row=35, over=EVENTS, answers="ok", settings=PATIENT),
    Case(fault="list_changed_loop", row=35, over=EVENTS, answers="ok", check=checks.bounded_lists),
    Case(fault="list_changed_loop", argument="flapping", row=35, over=EVENTS, answers="ok", check=checks.bounded_lists),
    *each(
        "notification_flood",
        "log progress unknown resource cancelled",
        row=36,
        over=EVENTS,
        answers="ok",
        settings={"request_timeout": 40.0},
        check=checks.bounded_rate,
    ),
    Case(fault="bad_notification", row=36, over=EVENTS, answers="ok"),
    *each("request_flood", "sampling ping roots unknown", row=36, over=EVENTS, answers="ok", settings=PATIENT),
    Case(fault="bad_request", row=36, over=EVENTS, answers="ok"),
    Case(
        fault="asks_for_input_for_ever",
        row=36,
        era="modern",
        over=("stdio", "http"),
        check=checks.bounded_rounds,
        settings=PATIENT,
    ),
    Case(fault="unknown_result_type", row=36, era="modern", over=("stdio", "http"), answers="either"),
]

CERTIFICATES = {
    "self_signed": "self.signed",
    "untrusted": "local issuer",
    "expired": "certificate has expired",
    "other_host": "mismatch",
}
"""What can be wrong with one, and what is said of it."""

WEB: list[Case] = [
    *each(
        "http_status",
        "connect-400 connect-401 connect-403 connect-404 connect-405 connect-408 connect-413 connect-429 connect-500 connect-502 connect-503",
        row=40,
        over=NETWORK,
        connects=False,
        says="HTTP [45]",
    ),
    *each(
        "http_status",
        "call-400 call-401 call-403 call-404 call-405 call-408 call-413 call-429 call-500 call-503",
        row=40,
        over=HTTP,
        says="HTTP [45]",
        at_once=True,
    ),
    *each("post_status", "401 404 500 429", row=48, over=SSE, at_once=True),
    Case(fault="post_hangs", row=48, over=SSE, says="did not answer"),
    *each("post_hangs", "initialized", row=48, over=("sse", "http", "json"), answers="ok"),
    Case(fault="unavailable_for_a_moment", row=40, over=NETWORK, answers="ok", settings={"startup_timeout": 4.0}),
    Case(fault="forgets_session", row=40, over=HTTP, answers="ok", check=checks.one_effect),
    Case(fault="always_forgets_session", row=40, over=HTTP, then="nothing"),
    *each("hostile_metadata", "connect", row=41, over=("sse", "http", "json"), connects=False, says="401"),
    *each("hostile_metadata", "call", row=41, over=HTTP, says="401", at_once=True),
    Case(
        fault="hostile_metadata",
        argument="",
        row=41,
        over=ONE_HTTP,
        connects=False,
        settings={"auth": {"type": "oauth"}},
    ),
    *(
        Case(
            fault="hostile_metadata",
            argument=way,
            row=41,
            over=("sse", "http", "json"),
            sampled=ONE_HTTP,
            connects=False,
            says="sign-in|redirects",
            settings={"auth": {"type": "client_credentials", "client_id": "us", "client_secret": "secret-of-a-test"}},
        )
        for way in ("servers", "endpoints", "issuer", "resource", "redirect")
    ),
    Case(fault="points_elsewhere", row=49, answers="ok", says="done"),
    *each(
        "breaks_off",
        "reset close half_head reset_in_body short_body half_chunk bad_chunk",
        row=42,
        over=HTTP,
        at_once=True,
        then="returns",
        check=checks.one_effect,
    ),
    *each("hangs_in_http", "before_head after_head in_body", row=43, over=HTTP, says="did not answer"),
    *each(
        "not_an_mcp_answer",
        "connect-portal connect-empty connect-untyped connect-accepted connect-no_content connect-bad_json connect-list connect-plain connect-echo",
        row=44,
        over=("sse", "http", "json"),
        connects=False,
        at_once=True,
    ),
    *each("not_an_mcp_answer", "connect-portal connect-empty", row=44, over=WEBSOCKET, connects=False),
    *each(
        "not_an_mcp_answer",
        "call-portal call-empty call-untyped call-accepted call-no_content call-bad_json call-list call-plain call-echo",
        row=44,
        over=HTTP,
        at_once=True,
    ),
    *each(
        "bad_stream",
        "empty half_event unfinished_event reset garbage retry_only",
        row=45,
        over=ONE_HTTP,
        at_once=True,
        then="returns",
        check=checks.one_effect,
    ),
    *each("bad_stream", "keepalive resumed_for_ever", row=45, over=ONE_HTTP, then="returns", check=checks.one_effect),
    *each("bad_stream", "other_events", row=45, over=ONE_HTTP, answers="ok"),
    *each(
        "endpoint",
        "never closed foreign other_name scheme_relative userinfo javascript file not_a_url huge",
        row=47,
        over=SSE,
        connects=False,
    ),
    Case(fault="answers_before_endpoint", row=47, over=SSE, answers="ok", says="^done$"),
    *each(
        "redirects",
        "connect-loop connect-port connect-name connect-file connect-metadata_service connect-no_url",
        row=49,
        over=NETWORK,
        connects=False,
        settings={"headers": {"Authorization": "Bearer secret-of-a-test"}},
    ),
    *each(
        "redirects",
        "call-port call-loop",
        row=49,
        over=HTTP,
        at_once=True,
        settings={"headers": {"Authorization": "Bearer secret-of-a-test"}},
    ),
    *each(
        "tcp_garbage",
        "random ssh tls old_http bad_status bad_length two_lengths huge_header endless_header continue closed",
        row=50,
        over=("sse", "websocket", "http"),
        connects=False,
    ),
    Case(
        fault="behaves",
        argument="tls_to_plain_port",
        row=50,
        over=("sse", "websocket", "http"),
        connects=False,
        secure=True,
        says="TLS",
        at_once=True,
    ),
    *(
        Case(
            fault="plain_beneath_tls",
            argument=wrong,
            row=50,
            over=("sse", "websocket", "http"),
            connects=False,
            secure=True,
            says=f"not trusted: .*{says}",
            at_once=True,
        )
        for wrong, says in CERTIFICATES.items()
    ),
    *each("plain_beneath_tls", "trusted", row=50, over=("sse", "websocket", "http"), answers="ok", secure=True),
    *each("packed_answer", "gzip deflate", row=22, over=HTTP, answers="ok"),
    *each(
        "packed_answer", "gzip_bomb deflate_bomb events_bomb", row=22, over=HTTP, says="large|limit", settings=PATIENT
    ),
    *each("packed_answer", "twice twice_bomb brotli unknown truncated not_packed", row=22, over=HTTP, settings=PATIENT),
    *each(
        "bad_network",
        "latency jitter bandwidth bytes",
        row=52,
        over=NETWORK,
        answers="ok",
        settings={"startup_timeout": 8.0, "timeout": 8.0, "request_timeout": 8.0},
    ),
    Case(fault="bad_network", argument="blackhole", row=52, over=NETWORK, says="did not answer", then="nothing"),
]

SOCKETS: list[Case] = [
    *each(
        "ws_handshake",
        "status_200 status_401 status_403 status_404 status_500",
        row=51,
        over=WEBSOCKET,
        connects=False,
        says="HTTP [245]",
    ),
    *each(
        "ws_handshake",
        "wrong_subprotocol wrong_accept no_upgrade huge_header many_headers unasked_extension never",
        row=51,
        over=WEBSOCKET,
        connects=False,
    ),
    Case(fault="ws_handshake", argument="no_subprotocol", row=51, over=WEBSOCKET, answers="ok"),
    *each(
        "ws_frames",
        "close_1011 close_1000 close_4000 close_1012",
        row=51,
        over=WEBSOCKET,
        says="closed the connection with code",
        at_once=True,
        then="returns",
    ),
    *each(
        "ws_frames",
        "close_999 close_without_code close_half_code close_bad_reason end_without_close continuation_first masked reserved_bits unknown_opcode long_ping huge_length garbage",
        row=51,
        over=WEBSOCKET,
        at_once=True,
        then="returns",
    ),
    *each("ws_frames", "endless_fragments", row=51, over=WEBSOCKET, then="returns", settings=PATIENT),
    *each("ws_frames", "half_frame", row=51, over=WEBSOCKET, then="nothing", says="did not answer"),
    *each(
        "ws_frames",
        "binary fragments ping_flood pong_flood empty_frames invalid_utf8",
        row=51,
        over=WEBSOCKET,
        answers="ok",
        says="done",
        settings=PATIENT,
    ),
    *each("ws_frames", "many_fragments", row=51, over=WEBSOCKET, answers="either", then="returns", settings=PATIENT),
    *each("ws_deflate_bomb", "60", row=51, over=WEBSOCKET, then="returns", settings=PATIENT),
    *each("ws_deflate_bomb", "1", row=51, over=WEBSOCKET, answers="ok", settings=PATIENT),
]

ENDS: list[Case] = [
    *each("daemon_grandchild", "quiet stubborn", row=55, over=STDIO, answers="ok"),
    *each("daemon_grandchild", "sleeper", row=55, over=STDIO, answers="ok"),
    *each("daemon_grandchild", "orphan", row=55, over=STDIO, answers="either", then="returns"),
    Case(fault="daemon_grandchild", argument="crash", row=55, over=STDIO, then="returns", at_once=True),
    Case(fault="forks_without_end", row=55, over=STDIO, answers="ok"),
    *each("ignores_eof", "eof term", row=56, over=STDIO, answers="ok"),
    Case(fault="slow_flush", row=56, over=STDIO, answers="ok", then="nothing", check=checks.flushed),
]

CASES: list[Case] = [*START, *NOISE, *CALLS, *SIZES, *ANSWERS, *LISTS, *UNASKED, *WEB, *SOCKETS, *ENDS, *SUBTLE]
EVERYTHING: list[Cell] = [Cell(case, transport) for case in CASES for transport in case.over]
CELLS: list[Cell] = [cell for cell in EVERYTHING if cell.transport in (cell.case.sampled or cell.case.over)]
"""What is tried by default."""
TESTED: list[Cell] = [Cell(case, case.over[turn % len(case.over)]) for turn, case in enumerate(CASES)]
"""What the test suite tries: each case once, over the transports in turn."""
assert len({str(cell) for cell in EVERYTHING}) == len(EVERYTHING)
