import pytest

import pausebed
from pausebed.scenario import overrides, schema


def test_a_built_scenario_is_good_and_survives_a_file(incast, tmp_path):
    assert incast.problems() == []
    incast.save(tmp_path / "incast.toml")
    assert pausebed.Scenario.load(tmp_path / "incast.toml").keys == incast.keys


def test_keys_are_set_as_the_program_sets_them(incast):
    incast["fabric.link.rate"] = "10 Gbps"
    incast["scheme.kind"] = "ib-cca"
    assert incast["fabric"]["link"] == {"rate": "10 Gbps"}
    assert incast.problems() == []


def test_a_wrong_key_is_named_with_the_nearest_good_one(incast):
    incast["run.duratoin"] = incast.keys["run"].pop("duration")
    with pytest.raises(pausebed.ScenarioError) as caught:
        incast.check()
    wrong = next(problem for problem in caught.value.problems if problem.key == "run.duratoin")
    assert "duration" in str(wrong)
    assert incast.text.splitlines()[wrong.line - 1].startswith("duratoin")


def test_values_of_every_kind_are_written_as_toml():
    odd = 'a "quoted" \\ line\nand ümläuts \x7f'
    values = {"a": True, "b": 3, "c": 0.5, "d": [1, "x"], "e": {"f g": odd}}
    scenario = pausebed.Scenario("values", **values)
    back = pausebed._native.keys(scenario.text)
    assert __import__("json").loads(back) == {"schema": 1, "name": "values", **values}
    assert overrides({"run.seed": 3, "scheme.kind": "none"}) == ["run.seed=3", 'scheme.kind="none"']


def test_the_schema_names_the_tables():
    assert {"run", "fabric", "traffic"} <= schema()["properties"].keys()


def test_a_variant_is_loaded_and_run_with_its_base(tmp_path, incast):
    incast.save(tmp_path / "incast.toml")
    variant = tmp_path / "variant.toml"
    variant.write_text('base = "incast.toml"\nname = "variant"\nrun.seed = 77\n')
    loaded = pausebed.Scenario.load(variant)
    assert (loaded["name"], loaded["run.seed"], loaded["fabric"]) == ("variant", 77, incast["fabric"])
    assert pausebed.run(variant).result["scenario"] == "variant"
    variant.write_text('base = "none.toml"\n')
    with pytest.raises(pausebed.ScenarioError, match="line 1: base: .*none.toml"):
        pausebed.run(variant)
    with pytest.raises(FileNotFoundError):
        pausebed.run(tmp_path / "none.toml")
