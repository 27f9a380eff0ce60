"""A command line for people: one page of help, the nearest word, completion, a quiet Ctrl-C."""

import argparse
import shlex
import shutil
import subprocess
import sys

import pytest

from engine.cli import CANCELLED, COMMANDS, WRONG_REQUEST, build_parser, completion, main

MANY = ("reconstruct", "compare", "batch")


def printed(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0
    return capsys.readouterr().out


def parser_of(command):
    (commands,) = (
        action
        for action in build_parser([command])._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return commands.choices[command]


@pytest.mark.parametrize("command", MANY)
def test_help_is_one_page_with_examples_that_parse(command, capsys):
    lines = printed(capsys, command, "--help").splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("  -") for line in lines) in range(15, 25)
    start = f"  dualscope {command} "
    examples = [line.strip() for line in lines if line.startswith(start)]
    assert len(examples) in (2, 3)
    for example in examples:
        options = build_parser([command]).parse_args(shlex.split(example)[1:])
        assert options.command == command


@pytest.mark.parametrize("command", MANY)
def test_all_options_are_in_the_long_help(command, capsys):
    text = printed(capsys, command, "--help-all")
    for action in parser_of(command)._actions:
        assert all(name in text for name in action.option_strings)
    assert "dds: A few conjugate-gradient steps" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["reconstruct", "demo:ct", "--veiws", "30"],
            "unrecognised option --veiws: did you mean --views? (see dualscope reconstruct --help)",
        ),
        (["compare", "demo:ct", "--sovlers=fbp"], "--sovlers: did you mean --solvers?"),
        (["reconstruct", "demo:ct", "--qqq"], "unrecognised option --qqq (see"),
        (["reconstruct", "demo:ct", "other"], "unexpected argument 'other'"),
        (["recontruct", "demo:ct"], "there is no command 'recontruct': did you mean reconstruct?"),
        (["prior", "lst"], "there is no command 'lst': did you mean list?"),
        (["prior", "info", "tv", "--hlep"], "did you mean --help?"),
        (["completion", "csh"], "bash|zsh|fish 'csh' is not known: choose one of bash, zsh, fish"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(words, said, capsys):
    assert main(words) == WRONG_REQUEST
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1


def test_the_beginning_of_an_option_still_does():
    options = build_parser(["reconstruct"]).parse_args(["reconstruct", "demo:ct", "--angular", "9"])
    assert options.angular_range == "9"


# -- completion -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return list(completion.levels(build_parser([*COMMANDS])))


@pytest.fixture(scope="module")
def bash(found):
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")

    def complete(*words):
        typed = " ".join(shlex.quote(word) for word in ("dualscope", *words))
        asked = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _dualscope\n"
        script = completion.bash(found) + asked + 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            [shell, "--norc", "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rec",), ["reconstruct"]),
        (("reconstruct", "demo:ct", "--vie"), ["--views"]),
        (("compare", "--solv"), ["--solvers"]),
        (("reconstruct", "demo:ct", "--solver", "ddn"), ["ddnm"]),
        (("reconstruct", "demo:ct", "--injection", ""), ["none", "awgn", "sh"]),
        (("reconstruct", "demo:ct", "--dual", "o"), ["on", "off"]),
        (("prior", "im"), ["import"]),
        (("prior", "import", "--overw"), ["--overwrite"]),
        (("reconstruct", "--record", "x"), []),  # a file's name: bash does that itself
        (("reconstruct", "prior", "im"), []),  # an input of that name is no command
    ],
)
def test_bash_completes_commands_options_and_values(bash, words, expected):
    assert bash(*words) == expected


def test_bash_offers_every_command(bash):
    assert bash("") == list(COMMANDS)


def test_the_scripts_of_all_shells_know_every_option(found, capsys):
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        for name in (name for level in found for option in level.options for name in option.names):
            mark = name if shell != "fish" else f"{'-l' if name[1] == '-' else '-s'} "
            assert mark.strip() in script
            assert name.lstrip("-") in script
        if path := shutil.which(shell):
            subprocess.run([path, "-n"], input=script, text=True, check=True)


# -- Ctrl-C while it starts -----------------------------------------------------------------------

PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from engine.cli import main
sys.exit(main(["reconstruct", "--help"]))
"""


@pytest.mark.parametrize(
    "module", ["argparse", "engine.spec.errors", "engine.cli.parser", "torch", "engine.runs.run"]
)
def test_ctrl_c_while_the_program_loads_is_one_line(module):
    done = subprocess.run([sys.executable, "-c", PRESSED, module], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (CANCELLED, "dualscope: cancelled.\n")
    assert done.stdout == ""


def test_nothing_that_takes_time_is_loaded_before_ctrl_c_is_looked_after():
    code = "import sys; import engine.cli; print([m for m in sys.argv[1:] if m in sys.modules])"
    slow = ["argparse", "torch", "numpy", "engine.spec.errors", "engine.physics"]
    done = subprocess.run([sys.executable, "-c", code, *slow], capture_output=True, text=True)
    assert done.stdout == "[]\n"
