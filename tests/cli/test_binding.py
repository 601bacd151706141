"""The address that a gateway listens at: never open by default, and what is wrong is said with what to do."""

import socket
from contextlib import ExitStack, suppress

import pytest

from squidbot.cli.binding import address_at, address_of, bound, is_loopback, one_each
from squidbot.cli.errors import CommandError


@pytest.mark.requirement("G-01")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "squidbot.example.com"])
def test_an_address_that_others_reach_needs_the_names_they_may_use(host: str) -> None:
    """T23: a gateway that is open by accident is open."""
    with pytest.raises(CommandError, match="other machines") as caught:
        bound(host, 0, allowed_hosts=[])
    assert caught.value.exit_code == 2
    assert "allowed_hosts" in str(caught.value.hint)


@pytest.mark.requirement("G-01")
def test_a_taken_port_is_said_with_what_to_do() -> None:
    """Not a traceback, and not another port in silence."""
    with bound("127.0.0.1", 0, allowed_hosts=[]) as first:
        port = first.getsockname()[1]
        with pytest.raises(CommandError, match=f"port {port} of 127.0.0.1 is taken") as caught:
            bound("127.0.0.1", port, allowed_hosts=[])
    assert caught.value.exit_code == 2
    assert "--port 0" in str(caught.value.hint)


def test_an_address_of_another_machine_cannot_be_taken() -> None:
    """A name that is resolved elsewhere, or not at all, is named."""
    with pytest.raises(CommandError, match="cannot listen at"):
        bound("192.0.2.1", 0, allowed_hosts=["x"])


def test_the_address_is_one_that_commands_of_this_machine_can_use() -> None:
    """Whoever listens everywhere is asked at home."""
    with bound("0.0.0.0", 0, allowed_hosts=["squidbot.example.com"]) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1])):
            pass
    assert address_at("::", 80) == "http://[::1]:80"
    assert address_at("squidbot.example.com", 80) == "http://squidbot.example.com:80"


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.5", True), ("::1", True), ("localhost", True), ("x", False)])
def test_only_this_machine_is_loopback(host: str, expected: bool) -> None:
    """A name may lead anywhere."""
    assert is_loopback(host) is expected


@pytest.mark.requirement("G-10")
def test_each_worker_has_a_socket_of_its_own_at_the_one_address() -> None:
    """At one socket the quickest worker takes all connections that come at once, and the others have none."""
    listener = bound("127.0.0.1", 0, allowed_hosts=[])
    address = listener.getsockname()
    with ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in one_each(listener, 2)]
        assert {each.getsockname() for each in listeners} == {address}
        with pytest.raises(CommandError, match="is taken"):
            bound("127.0.0.1", address[1], allowed_hosts=[])
        for _ in range(64):
            stack.enter_context(socket.create_connection(address))
        came = [0, 0]
        for number, each in enumerate(listeners):
            each.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    stack.enter_context(each.accept()[0])
                    came[number] += 1
    assert sum(came) == 64
    assert min(came) > 0
