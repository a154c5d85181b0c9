"""Mistakes of trial authors. Each is told in one line that names the call, the value and what to do; those that show
before training are found before the first batch."""
import re
import shutil
import unittest

from cluster import Cluster, wait_until
from test_main_job import BUILD, HERE

FIXTURE = HERE / "fixtures" / "mistakes"
OWN = r" \(model_def\.cpp:\d+\)$"

# Hyperparameter `kind` of the fixture, the line of the failure, and whether a batch may be trained before it.
BEFORE, TRAINING = False, True
MISTAKES = [
    ("hparam missing", r'constructor: no hyperparameter "learning_rat"; .* did you mean "learning_rate"\?' + OWN, BEFORE),
    ("hparam type", r'hyperparameter "kind" is "hparam type", not a whole number' + OWN, BEFORE),
    ("hparam fraction", r'hyperparameter "learning_rate" is 0.5, not a whole number' + OWN, BEFORE),
    ("data key", r"a value of the configuration, or other JSON: key 'folder' not found" + OWN, BEFORE),
    ("foreign optimizer", r"wrap_optimizer: a parameter of shape \[3, 3\] belongs to no wrapped model; call wrap_model on it first" + OWN, BEFORE),
    ("no parameters", r"wrap_optimizer: the optimizer has no parameters" + OWN, BEFORE),
    ("step size", r"StepLR: step_size must be at least 1" + OWN, BEFORE),
    ("plateau", r"ReduceLROnPlateau needs a metric; use LRStepMode::kManual and call step\(metric\)" + OWN, BEFORE),
    ("missing weights", r"absent\.safetensors: No such file or directory" + OWN, BEFORE),
    ("unknown model", r'models: there is no "resnet19"; there are: resnet18, ', BEFORE),
    ("constructor throws", r"constructor: the vocabulary is empty" + OWN, BEFORE),
    ("missing data", r"build_training_data_loader: /absent/images: No such file or directory" + OWN, BEFORE),
    ("no records", r"build_training_data_loader: DataLoader: the dataset is empty" + OWN, BEFORE),
    ("batch size 0", r"DataLoader: batch_size must be at least 1, not 0" + OWN, BEFORE),
    ("uneven tensors", r"TensorDataset: tensors \[20, 2\] and \[19, 1\] have different numbers of rows" + OWN, BEFORE),
    ("too few for a batch", r"DataLoader: drop_last leaves no batch of 4 in 3 records" + OWN, BEFORE),
    ("no validation records", r"build_validation_data_loader: DataLoader: the dataset is empty" + OWN, BEFORE),
    ("batch of another kind", r"train_batch \(batch 0\): a batch was taken for a dict, but it is a list of 2" + OWN, TRAINING),
    ("three parts of two", r"a batch was taken for a list of 3, but it is a list of 2" + OWN, TRAINING),
    ("shape", r"train_batch \(batch 0\): mat1 and mat2 shapes cannot be multiplied \(4x2 and 5x2\)" + OWN, TRAINING),
    ("type", r"train_batch \(batch 0\): .*expected .*(?i:float|long).*" + OWN, TRAINING),
    ("label out of range", r"train_batch \(batch 0\): Target 7 is out of bounds\." + OWN, TRAINING),
    ("vector loss", r"backward: the loss must be one number, not a tensor of shape \[4, 1\]; take its mean, .*" + OWN, TRAINING),
    ("undefined loss", r"backward: the loss is an undefined tensor" + OWN, TRAINING),
    ("detached loss", r"backward: the loss does not depend on any parameter .*" + OWN, TRAINING),
    ("NaN loss", r"train_batch \(batch 0\): the loss is nan; lower the learning rate or clip gradients", TRAINING),
    ("backward twice", r"Trying to backward through the graph a second time", TRAINING),
    ("foreign step", r"step_optimizer: this optimizer is not the one wrap_optimizer returned" + OWN, TRAINING),
    ("vector metric", r'train_batch: metric "loss" must be one number, not a tensor of shape \[3\]', TRAINING),
    ("validation throws", r"evaluate_batch \(batch 0\): label 11 of 10" + OWN, BEFORE),
    ("validation shape", r"evaluate_batch \(batch 0\): mat1 and mat2 shapes cannot be multiplied" + OWN.replace(" ", ".* ", 1), BEFORE),
    ("wrong metric name", r'searcher\.metric is "validation_loss", but the numbers of validation are: validation_los', BEFORE),
    ("no metrics", r"the validation loader gave no batch, or evaluate_batch no metric", BEFORE),
    ("uneven metric names", r"uneven|more", BEFORE),
]
CONFIG = """name: mistakes
entrypoint: model_def:MistakenTrial
hyperparameters:
  global_batch_size: 4
  learning_rate: 0.5
  kind: none
searcher:
  name: single
  metric: validation_loss
  max_length: {batches: 20}
max_restarts: 0
"""
# Replacements in the configuration, and the line of the refusal.
REFUSED = [
    ("hyperparameters:", "hyperparameterz:", r"config\.yaml:3:1  hyperparameterz  E-CFG-\w+  .*hyperparameters"),
    ("name: single", "name: singel", r"config\.yaml:8:9  searcher\.name  E-CFG-\w+  .*single"),
    ("{batches: 20}", "{batches: -1}", r"config\.yaml:10:\d+  searcher\.max_length\S*  E-CFG-\w+  "),
    ("max_restarts: 0", "max_restarts: many", r"config\.yaml:11:\d+  max_restarts  E-CFG-TYPE  "),
    ("max_restarts: 0", "resources: {slots_per_trial: 99}", r"E-CFG-UNSAT  99 slots; .*"),
    ("model_def:", "model_deff:", r"E-CTX-ENTRYPOINT  .*model_deff"),
]
# Changes of the source, and the line of the compiler.
REJECTED = [
    ("    auto loss =", "    auto los =", r"model_def\.cpp:\d+:\d+: error: .*loss"),
    ("det::Metrics evaluate_batch(det::Batch& batch) override", "det::Metrics evaluate_batches(det::Batch& batch) override",
     r"model_def\.cpp:\d+:\d+: error: .*override"),
]


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(BUILD)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start_agent("pair", slots=2)

    def ended(self, id):
        """The only trial of an experiment that has ended."""
        wait_until(f"the end of experiment {id}", lambda: self.cluster.experiment(id)["state"] in
                   ("STATE_ERROR", "STATE_COMPLETED"), timeout=240)
        return self.cluster.trial(self.cluster.trial_id(id))

    def test_mistakes_in_a_trial_are_told_in_one_line_with_the_place(self):
        started = {kind: self.cluster.create(FIXTURE, CONFIG.replace("kind: none", f"kind: {kind}"))
                   for kind, _, _ in MISTAKES}
        for kind, line, may_train in MISTAKES:
            with self.subTest(mistake=kind):
                trial = self.ended(started[kind])
                self.assertEqual(trial["state"], "STATE_ERROR")
                told = [one for one in trial["exitReason"].split("\n") if one.startswith("error: ")]
                self.assertEqual(len(told), 1, trial["exitReason"])
                self.assertRegex(told[0], line)
                if not may_train:
                    self.assertEqual(trial["totalBatchesProcessed"], 0)

    def test_a_metric_that_is_not_a_number_is_warned_about(self):
        id = self.cluster.create(FIXTURE, CONFIG.replace("kind: none", "kind: NaN validation"))
        self.ended(id)
        self.assertRegex(self.cluster.logs(self.cluster.trial_id(id)), r"validation_loss is NaN after batch \d+; it is never the best")

    def test_mistakes_in_a_configuration_are_refused_with_line_and_column(self):
        for old, new, line in REFUSED:
            with self.subTest(mistake=new):
                path = self.cluster.dir / "config.yaml"
                path.write_text(CONFIG.replace(old, new))
                done = self.cluster.run_det("experiment", "create", path, FIXTURE)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, line)

    def test_mistakes_that_the_compiler_finds_take_no_slot(self):
        for old, new, line in REJECTED:
            with self.subTest(mistake=new):
                directory = self.cluster.dir / re.sub(r"\W+", "-", new)
                shutil.copytree(FIXTURE, directory)
                source = directory / "model_def.cpp"
                self.assertIn(old, source.read_text())
                source.write_text(source.read_text().replace(old, new))
                trial = self.ended(self.cluster.create(directory, CONFIG))
                self.assertEqual(trial["state"], "STATE_ERROR")
                self.assertRegex(trial["exitReason"], line)
                self.assert_built_nowhere(trial)

    def test_an_unknown_class_is_told_with_the_classes_that_exist(self):
        trial = self.ended(self.cluster.create(FIXTURE, CONFIG.replace(":MistakenTrial", ":NoSuchTrial")))
        self.assertRegex(trial["exitReason"], r"error: .*NoSuchTrial.*MistakenTrial")
        self.assert_built_nowhere(trial)

    def assert_built_nowhere(self, trial):
        log = self.cluster.logs(trial["id"])
        self.assertNotIn("<stdin>", log)
        self.assertNotIn("was assigned to", log)
