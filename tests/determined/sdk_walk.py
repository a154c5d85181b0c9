"""Calls every public method of Determined's Python SDK on a cluster, and compares the outcome with what is expected.

Run by `run.py --sdk` in the environment of the client. A method that is not called is a failure."""
import functools
import inspect
import pathlib
import sys
import tempfile
import warnings

warnings.simplefilter("ignore", FutureWarning)
from determined.experimental import client  # noqa: E402

CLASSES = (client.Determined, client.Experiment, client.Trial, client.Checkpoint, client.Model, client.ModelVersion,
           client.Project, client.Workspace, client.ResourcePool, client.User)
# Methods that end with an error here, and a part of its text.
REFUSED = {
    "Determined.add_oauth_client": "only GET and HEAD here", "Determined.list_oauth_clients": "API not found",
    "Determined.remove_oauth_client": "only GET and HEAD here",
    "Experiment.get_pachyderm_config": "No Pachyderm configuration found",
    "Checkpoint.get_pachyderm_commit": "Pachyderm configuration not found",
    "Checkpoint.get_metrics": "not offered",
    "ModelVersion.get_metrics": "not offered", "ModelVersion.iter_metrics": "not offered",
}
outcomes = {}  # method → "" or the text of its first error


def public_methods(kind):
    return [(name, value) for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]


def record(kind, name, method):
    """Replaces a method by one that stores its outcome. Generators are read to their end."""
    @functools.wraps(method)
    def recorded(*args, **kwargs):
        key = f"{kind.__name__}.{name}"
        try:
            answer = method(*args, **kwargs)
            if inspect.isgenerator(answer):
                answer = list(answer)
        except Exception as error:
            outcomes.setdefault(key, f"{type(error).__name__}: {error}")
            raise
        outcomes.setdefault(key, "")
        return answer
    setattr(kind, name, recorded)


def attempt(call, *args, **kwargs):
    """Returns the answer, or None after an error, which is recorded."""
    try:
        return call(*args, **kwargs)
    except Exception:
        return None


def walk_experiment(d, model_dir, actions):
    config = {"name": "walk", "entrypoint": "python3 train.py", "max_restarts": 0, "searcher": {"name": "single", "metric": "x"},
              "hyperparameters": {"actions": {str(i): action for i, action in enumerate(actions, start=1)}}}
    experiment = d.create_experiment(config, model_dir)
    trial = experiment.await_first_trial()
    assert experiment.wait(interval=0.1) == client.ExperimentState.COMPLETED
    running = d.create_experiment({**config, "hyperparameters": {"actions": {"1": {"action": "sleep", "time": 1000}}}}, model_dir)
    for name in ("pause", "activate", "cancel", "kill"):
        attempt(getattr(running, name))
    for name in ("archive", "unarchive", "reload", "get_trials", "list_trials",
                 "iter_trials", "list_checkpoints", "top_checkpoint", "get_pachyderm_config", "delete_tensorboard_files"):
        attempt(getattr(experiment, name))
    attempt(experiment.top_n_checkpoints, 2)
    for name, value in (("add_label", "a"), ("remove_label", "a"), ("set_labels", {"b"}), ("set_name", "walked"),
                        ("set_description", "text"), ("set_notes", "text")):
        attempt(getattr(experiment, name), value)
    with tempfile.TemporaryDirectory() as directory:
        attempt(experiment.download_code, output_dir=directory)
    return experiment, trial


def walk_trial(trial):
    for name in ("reload", "get_experiment", "get_checkpoints", "list_checkpoints", "top_checkpoint", "logs", "iter_logs",
                 "stream_training_metrics", "stream_validation_metrics", "kill"):
        attempt(getattr(trial, name))
    for name in ("iter_metrics", "stream_metrics"):
        attempt(getattr(trial, name), "training")
    return attempt(trial.select_checkpoint, latest=True)


def walk_checkpoint(checkpoint):
    for name in ("reload", "get_pachyderm_commit", "get_metrics"):
        attempt(getattr(checkpoint, name))
    attempt(checkpoint.add_metadata, {"a": 1})
    attempt(checkpoint.remove_metadata, ["a"])
    with tempfile.TemporaryDirectory() as directory:
        attempt(checkpoint.download, str(pathlib.Path(directory) / "files"))
        attempt(checkpoint.write_metadata_file, str(pathlib.Path(directory) / "metadata.json"))


def walk_registry(d, checkpoint):
    model = d.create_model("walk", metadata={"a": 1}, labels=["a"])
    attempt(model.add_metadata, {"b": 2})
    attempt(model.remove_metadata, ["b"])
    attempt(model.set_description, "text")
    attempt(model.set_labels, ["b"])
    version = model.register_version(checkpoint.uuid)
    for name in ("archive", "unarchive", "reload", "get_version", "get_versions", "list_versions"):
        attempt(getattr(model, name))
    attempt(version.set_name, "first")
    attempt(version.set_notes, "text")
    for name in ("reload", "get_metrics", "iter_metrics"):
        attempt(getattr(version, name))
    for name in ("get_models", "list_models", "get_model_labels"):
        attempt(getattr(d, name))
    attempt(d.get_model, "walk")
    attempt(d.get_model_by_id, model.model_id)
    d.create_workspace("walk models")
    attempt(model.move_to_workspace, "walk models")
    attempt(version.delete)
    attempt(model.delete)


def walk_places(d, experiment):
    workspace = d.create_workspace("walk")
    project = workspace.create_project("one", "text")
    attempt(d.list_workspaces)
    attempt(d.get_workspace, "walk")
    for name in ("reload", "list_projects", "list_pools"):
        attempt(getattr(workspace, name))
    attempt(workspace.get_project, "one")
    attempt(experiment.move_to_project, "walk", "one")
    for name, value in (("set_name", "two"), ("set_description", "more"), ("set_key", "WALK1"), ("remove_note", "note")):
        if name == "remove_note":
            attempt(project.add_note, "note", "text")
        attempt(getattr(project, name), value)
    for name in ("reload", "archive", "unarchive", "list_experiments"):
        attempt(getattr(project, name))
    pool = client.ResourcePool(d._session, "walk")
    attempt(pool.list_workspaces)
    for name in ("add_bindings", "remove_bindings", "replace_bindings"):
        attempt(getattr(pool, name), ["walk"])
    attempt(experiment.delete)
    attempt(workspace.delete_project, "two")
    attempt(d.delete_workspace, "walk")


def walk_users(d):
    user = d.create_user("walker", admin=False, password="Walk-1843-lovelace")
    attempt(d.list_users)
    attempt(d.get_user_by_id, user.user_id)
    attempt(d.get_user_by_name, "walker")
    for name in ("get_session_username", "whoami", "list_oauth_clients"):
        attempt(getattr(d, name))
    attempt(d.add_oauth_client, "https://example.org", "walk")
    attempt(d.remove_oauth_client, "walk")
    attempt(user.rename, "walked")
    attempt(user.change_display_name, "Walker")
    attempt(user.change_password, "Walk-1844-lovelace")
    attempt(user.link_with_agent, agent_uid=1000, agent_gid=1000, agent_user="walker", agent_group="walkers")
    for name in ("reload", "deactivate", "activate"):
        attempt(getattr(user, name))


def walk(master, password, model_dir):
    d = client.Determined(master, "admin", password)
    actions = [{"action": "report", "group": "training", "metrics": {"x": 1}},
               {"action": "report", "group": "validation", "metrics": {"x": 2}}, {"action": "checkpoint"}]
    experiment, trial = walk_experiment(d, model_dir, actions)
    attempt(d.get_experiment, experiment.id)
    attempt(d.list_experiments)
    attempt(d.get_trial, trial.id)
    for name in ("iter_trials_metrics", "stream_trials_metrics"):
        attempt(getattr(d, name), [trial.id], "training")
    for name in ("stream_trials_training_metrics", "stream_trials_validation_metrics"):
        attempt(getattr(d, name), [trial.id])
    checkpoint = walk_trial(trial)
    attempt(d.get_checkpoint, checkpoint.uuid)
    walk_checkpoint(checkpoint)
    walk_registry(d, checkpoint)
    attempt(checkpoint.remove_files, ["*.json"])
    attempt(checkpoint.delete)
    walk_places(d, experiment)
    walk_users(d)
    attempt(d.logout)


def failures():
    """Yields (method, why) for each method with another outcome than the expected one."""
    for kind in CLASSES:
        for name, _ in public_methods(kind):
            key = f"{kind.__name__}.{name}"
            wanted, got = REFUSED.get(key), outcomes.get(key)
            if got is None:
                yield key, "was not called"
            elif got and (wanted is None or wanted not in got):
                yield key, got[:300]
            elif not got and wanted is not None:
                yield key, f'works; remove it from REFUSED (expected "{wanted}")'


def main():
    master, password, model_dir = sys.argv[1:]
    for kind in CLASSES:
        for name, method in public_methods(kind):
            record(kind, name, method)
    walk(master, password, model_dir)
    failed = list(failures())
    for key, why in failed:
        print(f"failed: {key}: {why}")
    total = sum(len(public_methods(kind)) for kind in CLASSES)
    refused = sum(1 for key in REFUSED if outcomes.get(key))
    print(f"{total - len(failed) - refused} methods work, {refused} are refused as documented")
    print(f"{total - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
