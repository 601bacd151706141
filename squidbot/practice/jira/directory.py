"""What there is to choose from: the server itself, people, the project, types, statuses, fields."""

from squidbot.practice import clock
from squidbot.practice.jira import shapes, workflow
from squidbot.practice.jira.manners import Desk, refusal, window
from squidbot.practice.people import PEOPLE, by_account, by_login, matching
from squidbot.practice.store import Document
from squidbot.practice.web import Answer

# Id, name, JSON type, item type, custom.
_FIELDS = (
    ("summary", "Summary", "string", None),
    ("description", "Description", "string", None),
    ("issuetype", "Issue Type", "issuetype", None),
    ("project", "Project", "project", None),
    ("status", "Status", "status", None),
    ("priority", "Priority", "priority", None),
    ("assignee", "Assignee", "user", None),
    ("reporter", "Reporter", "user", None),
    ("creator", "Creator", "user", None),
    ("labels", "Labels", "array", "string"),
    ("created", "Created", "datetime", None),
    ("updated", "Updated", "datetime", None),
    ("duedate", "Due date", "date", None),
    ("resolution", "Resolution", "resolution", None),
    ("resolutiondate", "Resolved", "datetime", None),
    ("parent", "Parent", "issuelink", None),
    ("comment", "Comment", "comments-page", None),
    (workflow.SPRINT_FIELD, "Sprint", "array", "json"),
    (workflow.POINTS_FIELD, "Story Points", "number", None),
)
_ON_SCREEN = ("summary", "description", "issuetype", "project", "priority", "assignee", "reporter", "labels", "duedate")
_REQUIRED = ("summary", "issuetype", "project")


def server_info(desk: Desk) -> Answer:
    """Data Center calls its deployment 'Server', as it always has."""
    version = [1001, 0, 0] if desk.cloud else [10, 3, 0]
    return Answer(
        {
            "baseUrl": desk.call.base,
            "version": "1001.0.0-SNAPSHOT" if desk.cloud else "10.3.0",
            "versionNumbers": version,
            "deploymentType": "Cloud" if desk.cloud else "Server",
            "buildNumber": 100_300,
            "buildDate": shapes.moment(desk.call.world.created_at),
            "serverTime": shapes.moment(clock.now()),
            "scmInfo": "practice",
            "serverTitle": "Jira (squidbot practice world)",
        }
    )


def myself(desk: Desk) -> Answer:
    return Answer(shapes.user(desk, desk.call.person))


def get_user(desk: Desk) -> Answer:
    query = desk.call.query
    person = by_account(query.get("accountId")) if desk.cloud else by_login(query.get("username") or query.get("key"))
    if person is None:
        raise refusal(404, "Specified user does not exist or you do not have required permissions")
    return Answer(shapes.user(desk, person))


def search_users(desk: Desk) -> Answer:
    """By words in Cloud, by a name in Data Center, where a dot means everybody."""
    query = desk.call.query
    if by_id := query.get("accountId"):
        found = [person for person in PEOPLE if person.account_id == by_id]
    else:
        words = query.get("query", "") if desk.cloud else query.get("username", "")
        if not words and "assignable" not in desk.call.url:
            raise refusal(400, "The query parameter is missing: who is looked for?")
        found = list(PEOPLE) if words in {"", ".", "%"} else matching(words)
    start = desk.call.integer("startAt", 0)
    part = found[start : start + desk.call.integer("maxResults", 50)]
    return Answer([shapes.user(desk, person) for person in part])


def list_projects(desk: Desk) -> Answer:
    return Answer([shapes.project(desk)])


def search_projects(desk: Desk) -> Answer:
    return Answer(window(desk, [shapes.project(desk)], "values"))


def get_project(desk: Desk) -> Answer:
    _must_be_ours(desk)
    types = [shapes.issue_type(desk, name) for name in workflow.TYPES]
    lead = shapes.user(desk, PEOPLE[1])
    more: Document = {"description": "Of a world for practice", "lead": lead, "issueTypes": types, "components": []}
    return Answer(shapes.project(desk) | more | {"versions": [], "roles": {}})


def project_statuses(desk: Desk) -> Answer:
    _must_be_ours(desk)
    statuses = [shapes.status(desk, name) for name in workflow.STATUSES]
    return Answer([shapes.issue_type(desk, name) | {"statuses": statuses} for name in workflow.TYPES])


def nothing_yet(desk: Desk) -> Answer:
    """Components and versions: the project has none."""
    _must_be_ours(desk)
    return Answer([])


def issue_types(desk: Desk) -> Answer:
    return Answer([shapes.issue_type(desk, name) for name in workflow.TYPES])


def priorities(desk: Desk) -> Answer:
    return Answer([shapes.priority(desk, name) for name in workflow.PRIORITIES])


def statuses(desk: Desk) -> Answer:
    return Answer([shapes.status(desk, name) for name in workflow.STATUSES])


def status_categories(desk: Desk) -> Answer:
    return Answer([shapes.status_category(desk, name) for name in workflow.CATEGORIES])


def resolutions(desk: Desk) -> Answer:
    return Answer([shapes.resolution(desk)])


def list_fields(_desk: Desk) -> Answer:
    return Answer([_field(*field) for field in _FIELDS])


def create_meta(desk: Desk) -> Answer:
    """What can be made, with the fields of each type when they are asked for."""
    wanted = desk.call.query.get("projectKeys", workflow.PROJECT_KEY).split(",")
    if workflow.PROJECT_KEY not in wanted:
        return Answer({"expand": "projects", "projects": []})
    types = [shapes.issue_type(desk, name) for name in workflow.TYPES]
    if "fields" in desk.call.query.get("expand", ""):
        types = [kind | {"fields": _screen(desk)} for kind in types]
    return Answer({"expand": "projects", "projects": [shapes.project(desk) | {"issuetypes": types}]})


def create_meta_types(desk: Desk) -> Answer:
    _must_be_ours(desk)
    types = [shapes.issue_type(desk, name) for name in workflow.TYPES]
    return Answer(window(desk, types, "issueTypes" if desk.cloud else "values"))


def create_meta_fields(desk: Desk) -> Answer:
    _must_be_ours(desk)
    if desk.call.path["type"] not in workflow.TYPES.values():
        raise refusal(404, "The issue type does not exist in this project.")
    fields = [{"fieldId": name, **field} for name, field in _screen(desk).items()]
    return Answer(window(desk, fields, "fields" if desk.cloud else "values"))


def edit_meta(desk: Desk) -> Answer:
    return Answer({"fields": _screen(desk)})


def _must_be_ours(desk: Desk) -> None:
    if desk.call.path["project"].upper() not in {workflow.PROJECT_KEY, workflow.PROJECT_ID}:
        raise refusal(404, f"No project could be found with key '{desk.call.path['project']}'.")


def _screen(desk: Desk) -> Document:
    allowed = {
        "issuetype": [shapes.issue_type(desk, name) for name in workflow.TYPES],
        "priority": [shapes.priority(desk, name) for name in workflow.PRIORITIES],
        "project": [shapes.project(desk)],
    }
    shown = {name: (words, kind, items) for name, words, kind, items in _FIELDS if name in _ON_SCREEN}
    return {
        name: {
            "required": name in _REQUIRED,
            "name": words,
            "key": name,
            "schema": _schema(name, kind, items),
            "hasDefaultValue": name == "priority",
            "operations": ["add", "set", "remove"] if kind == "array" else ["set"],
            **({"allowedValues": allowed[name]} if name in allowed else {}),
        }
        for name, (words, kind, items) in shown.items()
    }


def _field(name: str, words: str, kind: str, items: str | None) -> Document:
    custom = name.startswith("customfield_")
    clauses = [f"cf[{name.rpartition('_')[2]}]", words] if custom else [name]
    return {
        "id": name,
        "key": name,
        "name": words,
        "custom": custom,
        "orderable": True,
        "navigable": True,
        "searchable": True,
        "clauseNames": clauses,
        "schema": _schema(name, kind, items),
    }


def _schema(name: str, kind: str, items: str | None) -> Document:
    schema: Document = {"type": kind} | ({"items": items} if items else {})
    if name == workflow.SPRINT_FIELD:
        return schema | {"custom": "com.pyxis.greenhopper.jira:gh-sprint", "customId": 10_020}
    if name == workflow.POINTS_FIELD:
        return schema | {"custom": "com.atlassian.jira.plugin.system.customfieldtypes:float", "customId": 10_016}
    return schema | {"system": name}
