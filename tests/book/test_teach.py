"""*Teach this*: its one source, its minutes and plans, the exercises as notebooks, and the slides."""

import re

import numpy as np
import pytest
from conftest import ROOT

from bookbuilder import pages, sheets, teaching
from explainer.theory.statistics import student

TEACH = (ROOT / "book/reference/teach.md").read_text("utf-8")
CHAPTERS = {name: said for name, said in teaching.source().items() if name != "weeks"}
CHAPTER = {name: pages.path_of(f"book/chapters/{name}", ROOT) for name in CHAPTERS}


def said_on(path):
    """What cells of a page say, code included, for captions and numbers stand in it."""
    return "\n".join("".join(cell["source"]) for cell in pages.cells(path))


def test_every_chapter_has_goals_needs_and_three_questions():
    assert list(CHAPTERS) == [name.rpartition("/")[2] for name in dict(pages.parts(ROOT))["The fifteen chapters"]]
    assert all(2 <= len(said["goals"]) <= 3 and len(said["questions"]) == 3 for said in CHAPTERS.values())
    weeks = teaching.source()["weeks"]
    assert set().union(*(week["chapters"] for week in weeks)) < set(CHAPTERS)
    ((number, section),) = re.findall(r"(\d+) only as far as “(.+?)”", " ".join(week["before"] for week in weeks))
    assert f"## {section}" in said_on([*CHAPTER.values()][int(number) - 1])


@pytest.mark.parametrize("name", CHAPTERS)
def test_numbers_of_questions_stand_in_their_chapter(name):
    numbers = {number for text in CHAPTERS[name]["questions"] for number in re.findall(r"\d*\.\d+|\b\d{2}\b", text)}
    assert {number for number in numbers if number not in said_on(CHAPTER[name])} == set()


@pytest.mark.parametrize("name", CHAPTERS)
def test_sections_take_the_minutes_of_the_page(name):
    content = pages.cells(CHAPTER[name])
    sections = pages.sections(content)
    assert abs(sum(sections.values()) - pages.minutes(content)) <= len(sections) / 2 + 1


def test_the_plan_takes_ninety_minutes():
    plan = TEACH[TEACH.index("## A plan for 90 minutes") : TEACH.index("## A plan for four weeks")]
    assert sum(map(int, re.findall(r"^\| (\d+) \|", plan, re.MULTILINE))) == 90


def test_the_evening_computes_what_it_says():
    values = np.array([0.40, 0.52, 0.46, 0.58, 0.44])
    assert f"{student(values):.2f}".replace("\N{NO-BREAK SPACE}", " ") in TEACH
    changed = student(np.where(values == 0.58, 0.46, values))
    assert f"{changed.estimate:.3f}" in TEACH and f"[{changed.low:.2f}, {changed.high:.2f}]" in TEACH
    above, way = np.array([0.10, 0.13, 0.09, 0.16, 0.12]), np.array([0.20, 0.30, 0.25, 0.30, 0.25])
    without = (above.sum() - above) / (way.sum() - way)
    pseudo = 5 * above.sum() / way.sum() - 4 * without
    for numbers in (without, pseudo):
        assert ", ".join(f"{number:.2f}" for number in numbers) in TEACH
    assert f"{student(pseudo):.2f}".replace("\N{NO-BREAK SPACE}", " ") in TEACH


# Exercises and problems as notebooks.


@pytest.mark.parametrize("path", [*map(CHAPTER.get, CHAPTERS), ROOT / sheets.PROBLEMS], ids=lambda path: path.stem)
def test_a_sheet_has_every_exercise_and_only_the_solved_one_its_solution(path):
    content = pages.cells(path)
    assert len(sheets.exercises(content)) == pages.exercises(content)
    checks = re.findall(r"^exercises\.\w+\(.*", "\n".join("".join(cell["source"]) for cell in content), re.MULTILINE)
    for solved in (str(sheets.sheet(path, solved=solved)) for solved in (False, True)):
        assert all(check in solved for check in checks)
    for one in sheets.exercises(content):
        open_, solved = (str(sheets.sheet(path, solved=solved)) for solved in (False, True))
        line = repr(re.split(r"```|\n", one.solution)[0][:60])[1:-1]
        assert line in solved and (not line or line not in open_)


QUICK = ["gradient_descent_as_attention", "what_makes_it_learning", "what_softmax_does", "three_predictions"]


@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("path", [*map(CHAPTER.get, QUICK), ROOT / sheets.PROBLEMS], ids=lambda path: path.stem)
def test_a_sheet_runs_by_itself(path, solved, capsys):
    space = {}
    for cell in sheets.sheet(path, solved=solved)["cells"][1:]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)  # our own committed text
    assert "Not yet" not in capsys.readouterr().out


def test_a_wrong_answer_to_a_problem_fails_its_stub():
    for one in sheets.exercises(pages.cells(ROOT / sheets.PROBLEMS)):
        (stub,) = one.stubs
        name = re.match(r"def (\w+)", stub)[1]
        check = f"import numpy as np\nimport torch\n{name} = lambda *a, **k: torch.tensor([7.0, 7.0])\n"
        with pytest.raises((AssertionError, RuntimeError, ValueError)):
            exec(check + re.sub(r"^def .*\n", "", stub), {})


def test_solutions_of_problems_stand_in_no_page(site):
    solutions = [one.solution for one in sheets.exercises(pages.cells(ROOT / sheets.PROBLEMS))]
    secret = [max(re.findall(r"[A-Za-z ,]{25,}", solution), key=len).strip() for solution in solutions]
    shown = [file.read_text("utf-8") for kind in ("html", "txt", "md") for file in site.rglob(f"*.{kind}")]
    assert not [one for one in secret if any(one in text for text in shown)]


# The slides.


@pytest.mark.parametrize(
    "said", re.findall(r"\{figure-of\} (.+)", (ROOT / "book/reference/slides.md").read_text("utf-8"))
)
def test_a_slide_shows_a_figure_of_its_chapter(said):
    chapter, name = said.split()
    assert re.search(rf'texts\.figure\(\s*"{name}"', said_on(CHAPTER[chapter]))
