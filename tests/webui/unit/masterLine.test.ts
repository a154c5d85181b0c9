// Lines of the master's log as sentences.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readable } from '../../../webui-static/src/cluster/masterLine';

const text = (message: string): string => readable(message).text;

test('an audited action is a sentence with its user, verb and object', () => {
  const of = (action: string, object: string, outcome = 'OK'): string =>
    text(`audit user=admin action=${action} object="${object}" outcome=${outcome} address=127.0.0.1`);
  assert.equal(of('ExperimentService/KillExperiment', 'experiment 14'), 'admin killed experiment 14');
  assert.equal(of('ExperimentService/UploadExperiment', 'experiment 3'), 'admin submitted experiment 3');
  assert.equal(of('ExperimentService/CreateExperiment', ''), 'admin checked a configuration');
  assert.equal(of('JobService/UpdateJobQueue', ''), 'admin updated the job queue');
  assert.equal(of('ClusterService/DisableSlot', 'vm'), 'admin disabled slot vm');
  assert.equal(of('ClusterService/EnableAgent', 'vm, agent vm'), 'admin enabled agent vm');
  assert.equal(of('UserService/PostUser', 'ada, user 2'), 'admin created user 2 (ada)');
  assert.equal(of('UserService/PostUser', 'user ada', 'InvalidArgument'), 'admin tried to create user ada: invalid argument');
  assert.equal(of('CheckpointService/DeleteCheckpoints', 'checkpoint 1111'), 'admin deleted checkpoint 1111');
  assert.equal(of('RbacService/AssignRoles', ''), 'admin assigned roles');
  assert.equal(of('ExperimentService/ContinueExperiment', 'experiment 4', 'InvalidArgument'), 'admin tried to continue experiment 4: invalid argument');
  assert.equal(text('audit user=ann action=AuthService/Login outcome=OK address=10.0.0.3'), 'ann signed in from 10.0.0.3');
});

test('an agent that joins is named once', () => {
  assert.equal(text('audit action=JoinService/Join object="agent vm" outcome=OK address=127.0.0.1'), 'agent vm joined');
});

test('reading the log is noise; other lines are not', () => {
  assert.equal(readable('audit user=admin action=MasterService/MasterLogs object="" outcome=OK address=127.0.0.1').isNoise, true);
  assert.equal(readable('ready').isNoise, false);
});

test('fields of other lines are words, and text that only resembles fields is unchanged', () => {
  assert.equal(text('agent connected agent=vm address=127.0.0.1 slots=3'), 'agent connected · agent vm · slots 3');
  for (const line of ['ready', 'agent <img src=x onerror="window.pwned=1"> is lost', 'a=b c', 'say x="1'])
    assert.equal(text(line), line);
});
