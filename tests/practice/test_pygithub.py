"""The forge as PyGithub meets it: a client that other people wrote, and that does not know it is practice."""

import subprocess
from collections.abc import Callable, Iterator

import github
import pytest
from github.Auth import Token
from github.Repository import Repository

from tests.practice.conftest import Practice

pytestmark = pytest.mark.requirement("F-05")

As = Callable[[str], github.Github]


@pytest.fixture
def acting(practice: Practice) -> Iterator[As]:
    """PyGithub with somebody's token."""
    opened: list[github.Github] = []

    def act(login: str) -> github.Github:
        client = github.Github(
            auth=Token(practice.directions["tokens"][login]),
            base_url=practice.directions["github_api_url"],
            seconds_between_requests=0,
            seconds_between_writes=0,
            retry=None,
            timeout=30,
        )
        opened.append(client)
        return client

    yield act
    for client in opened:
        client.close()


@pytest.fixture
def repository(acting: As) -> Repository:
    return acting("squidbot-practice").get_repo("tidewater/shop")


def test_it_is_a_small_believable_project(acting: As, repository: Repository) -> None:
    """A newcomer must find something to work on."""
    assert acting("bea").get_user().name == "Bea Okafor"
    assert acting("bea").get_user("tomas").login == "tomas"
    assert repository.full_name == "tidewater/shop"
    assert repository.default_branch == "main"
    assert {branch.name: branch.protected for branch in repository.get_branches()} == {
        "feature/discount-codes": False,
        "fix/cart-quantity": False,
        "main": True,
    }
    assert repository.get_commits().totalCount == 10
    assert repository.get_commits(path="shop/cart.py").totalCount == 2
    assert [pull.title for pull in repository.get_pulls()] == ["Add discount codes"]
    assert len([issue for issue in repository.get_issues(state="all") if issue.pull_request is None]) == 6
    assert acting("bea").get_rate_limit().rate.limit == 5_000


def test_code_is_read_and_found(acting: As, repository: Repository) -> None:
    """Search is a grep over the default branch, so that what was merged is found and what was not is not."""
    readme = repository.get_contents("README.md")
    assert not isinstance(readme, list)
    assert readme.decoded_content.startswith(b"# Tidewater shop")
    folder = repository.get_contents("shop")
    assert isinstance(folder, list)
    assert "shop/cart.py" in [entry.path for entry in folder]
    search = acting("sol").search_code
    assert [item.path for item in search("ROUND_HALF_UP repo:tidewater/shop")] == ["shop/cart.py"]
    assert [item.path for item in search("unknownproduct language:python path:tests")] == ["tests/test_catalogue.py"]
    assert [item.path for item in search('"def place" extension:py')] == ["shop/orders.py"]
    assert list(search("UnknownCode")) == []


def test_an_issue_lives_from_its_report_to_its_end(acting: As, repository: Repository) -> None:
    """Every step that a tester and a developer take with an issue."""
    issue = (
        acting("quinn")
        .get_repo("tidewater/shop")
        .create_issue("The cart forgets", body="After a restart.", labels=["bug", "brand new"], assignees=["bea"])
    )
    assert (issue.number, issue.user.login, issue.state) == (8, "quinn", "open")
    assert issue.create_comment("Seen twice.").body == "Seen twice."
    issue.add_to_labels("performance")
    issue.remove_from_labels("bug")
    issue.add_to_assignees("felix")
    issue.remove_from_assignees("bea")
    issue.edit(title="The cart forgets everything", state="closed", state_reason="not_planned")
    again = repository.get_issue(8)
    assert again.title == "The cart forgets everything"
    assert [label.name for label in again.labels] == ["brand new", "performance"]
    assert [person.login for person in again.assignees] == ["felix"]
    assert (again.state, again.state_reason, again.comments) == ("closed", "not_planned", 1)
    comment = next(iter(again.get_comments()))
    comment.edit("Seen three times.")
    assert again.get_comment(comment.id).body == "Seen three times."
    comment.delete()
    assert again.get_comments().totalCount == 0


def test_issues_are_filtered_and_counted_over_pages(acting: As, repository: Repository) -> None:
    """A client follows the Link header; one that is wrong loses issues in silence."""
    for number in range(35):
        repository.create_issue(f"Number {number}")
    assert len(list(repository.get_issues(state="all"))) == 42
    assert [issue.number for issue in repository.get_issues(labels=["bug"])] == [2]
    assert [issue.number for issue in repository.get_issues(assignee="felix")] == [4]
    assert [issue.number for issue in repository.get_issues(creator=acting("dee").get_user("dee"))] == [4]
    assert [issue.number for issue in repository.get_issues(state="closed")] == [1]
    assert repository.get_issues(assignee="none", direction="asc", sort="created")[0].number == 3
    assert [issue.number for issue in repository.get_issues(sort="comments")][:1] == [4]


def test_issues_are_searched_by_words_and_qualifiers(acting: As) -> None:
    """Agents look for duplicates before they report something."""
    search = acting("quinn").search_issues
    assert [issue.number for issue in search("sold-out is:open is:issue repo:tidewater/shop")] == [4, 2]
    assert [issue.number for issue in search("is:pr author:bea head:feature/discount-codes")] == [7]
    assert [issue.number for issue in search("author:@me -is:open")] == [1]
    assert [issue.number for issue in search('label:"good first issue" no:milestone type:issue')] == [4]
    assert search("org:elsewhere cart").totalCount == 0
    assert acting("bea").search_repositories("shop org:tidewater").totalCount == 1


@pytest.mark.parametrize(("way", "parents", "commits"), [("merge", 2, 4), ("squash", 1, 2), ("rebase", 1, 3)])
def test_a_pull_request_is_reviewed_and_merged(
    acting: As, practice: Practice, repository: Repository, way: str, parents: int, commits: int
) -> None:
    """The heart of the story; afterwards it is git that must agree, not only the forge."""
    before = practice.git("rev-parse", "main")
    practice.push("feature/gift", {"shop/gift.py": '"""Gifts."""\n'})
    practice.push("feature/gift", {"shop/wrap.py": '"""Paper."""\n'}, start="feature/gift")
    theirs = acting("bea").get_repo("tidewater/shop")
    pull = theirs.create_pull(base="main", head="feature/gift", title="Gifts", body="Fixes #3 and closes #2")
    assert (pull.number, pull.mergeable, pull.mergeable_state, pull.commits) == (8, True, "clean", 2)
    assert [(file.filename, file.status) for file in pull.get_files()] == [
        ("shop/gift.py", "added"),
        ("shop/wrap.py", "added"),
    ]
    pull.create_review_request(reviewers=["tomas"])
    pull.edit(title="Gift wrapping")
    review = acting("tomas").get_repo("tidewater/shop").get_pull(8).create_review(body="Fine.", event="APPROVE")
    assert review.state == "APPROVED"
    assert [person.login for person in repository.get_pull(8).requested_reviewers] == []
    done = acting("tomas").get_repo("tidewater/shop").get_pull(8).merge(merge_method=way)
    assert done.merged
    tip = practice.git("rev-parse", "main")
    assert tip == done.sha
    assert len(practice.git("show", "-s", "--format=%P", "main").split()) == parents
    assert int(practice.git("rev-list", "--count", f"{before}..main")) == commits - 1
    assert practice.git("show", "main:shop/wrap.py") == '"""Paper."""'
    assert practice.git("show", "-s", "--format=%cn", "main") == "Tomas Lindqvist"
    merged = repository.get_pull(8)
    assert (merged.merged, merged.state, merged.merged_by.login) == (True, "closed", "tomas")
    assert merged.is_merged()
    assert merged.changed_files == 2
    assert [repository.get_issue(number).state for number in (2, 3, 4)] == ["closed", "closed", "open"]


def test_a_conflict_is_a_real_one_and_can_be_solved(practice: Practice, repository: Repository) -> None:
    """The branch in the seed conflicts with main, so that everybody can practise it."""
    pull = repository.create_pull(base="main", head="fix/cart-quantity", title="Quantity")
    assert (pull.mergeable, pull.mergeable_state) == (False, "dirty")
    with pytest.raises(github.GithubException, match="not mergeable") as refused:
        pull.merge()
    assert refused.value.status == 405
    text = practice.git("show", "main:shop/cart.py")
    practice.push("solved", {"shop/cart.py": text + "\n# whole\n"})
    subprocess.run(
        ["git", "-C", str(practice.clone), "merge", "-q", "-s", "ours", "origin/fix/cart-quantity", "-m", "Solve"],
        check=True,
    )
    subprocess.run(["git", "-C", str(practice.clone), "push", "-q", "origin", "HEAD:fix/cart-quantity"], check=True)
    again = repository.get_pull(pull.number)
    assert (again.mergeable, again.mergeable_state) == (True, "clean")
    assert again.head.sha != pull.head.sha
    assert again.merge().merged


def test_nobody_approves_their_own_but_the_bot_of_the_shared_token(
    acting: As, practice: Practice, repository: Repository
) -> None:
    """GitHub's rule holds for people; one token must still be able to play every role."""
    own = acting("bea").get_repo("tidewater/shop").get_pull(7)
    for event in ("APPROVE", "REQUEST_CHANGES"):
        with pytest.raises(github.GithubException, match="your own pull request") as refused:
            own.create_review(body="Mine", event=event)
        assert refused.value.status == 422
    assert own.create_review(body="A remark", event="COMMENT").state == "COMMENTED"
    practice.push("by-the-bot", {"bot.txt": "hello\n"})
    pull = repository.create_pull(base="main", head="by-the-bot", title="Mine")
    assert pull.create_review(event="APPROVE").state == "APPROVED"
    assert pull.get_reviews().totalCount == 1


def test_a_pull_request_is_closed_and_opened_again(repository: Repository) -> None:
    """People change their minds."""
    pull = repository.get_pull(7)
    pull.edit(state="closed")
    assert [one.number for one in repository.get_pulls(state="closed")] == [7]
    pull.edit(state="open", body="Once more.")
    assert repository.get_pull(7).body == "Once more."
    assert [one.number for one in repository.get_pulls(head="tidewater:feature/discount-codes", base="main")] == [7]


def test_branches_are_made_moved_and_removed_as_references(practice: Practice, repository: Repository) -> None:
    """Some clients never clone: they branch through the API."""
    main = repository.get_branch("main").commit.sha
    made = repository.create_git_ref("refs/heads/topic/one", main)
    assert practice.git("rev-parse", "topic/one") == main
    assert [ref.ref for ref in repository.get_git_matching_refs("heads/topic")] == ["refs/heads/topic/one"]
    made.edit(repository.get_commits()[1].sha, force=True)
    assert repository.get_git_ref("heads/topic/one").object.sha == practice.git("rev-parse", "main~1")
    assert repository.get_commit("topic/one").sha == practice.git("rev-parse", "main~1")
    made.delete()
    with pytest.raises(github.UnknownObjectException):
        repository.get_git_ref("heads/topic/one")


def test_commits_are_shown_and_compared(practice: Practice, repository: Repository) -> None:
    """A reviewer without a clone sees the same as one with it."""
    commit = repository.get_commit("main")
    assert commit.files[0].filename == "shop/cart.py"
    assert commit.author.login == "bea"
    assert commit.stats.total == commit.stats.additions + commit.stats.deletions > 0
    assert repository.get_git_commit(commit.sha).message == commit.commit.message
    assert repository.get_commits(author="sol").totalCount == 1
    first = repository.get_commit(practice.git("rev-list", "--max-parents=0", "main"))
    assert {file.status for file in first.files} == {"added"}
    compared = repository.compare("main", "fix/cart-quantity")
    assert (compared.status, compared.ahead_by, compared.behind_by) == ("diverged", 1, 1)
    assert commit.get_combined_status().total_count == 0


def test_line_comments_and_pending_reviews(acting: As, repository: Repository) -> None:
    """A review may be written bit by bit before others see it."""
    mine = acting("tomas").get_repo("tidewater/shop").get_pull(7)
    comments: list[github.PullRequest.ReviewComment] = [{"path": "shop/discounts.py", "body": "Why?", "line": 5}]
    review = mine.create_review(comments=comments)
    assert review.state == "PENDING"
    assert repository.get_pull(7).get_reviews().totalCount == 1
    assert mine.get_review(review.id).id == review.id
    assert [comment.body for comment in mine.get_review_comments()] == ["Why?"]
    assert [request.login for request in mine.get_review_requests()[0]] == []
