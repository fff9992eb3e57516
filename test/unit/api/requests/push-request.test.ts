import test from 'ava';
import { pushTask } from '../../../../src/api/requests/push-request.ts';
import { asJson } from '../../../../src/lib/as-json.ts';
import type { TaskRow } from '../../../../src/tasks/cluster-tasks.ts';

const SPEC = {
  stream: { name: 'live', trackIds: [], variantNames: [] },
  protocol: 'rtmp',
  url: 'rtmp://example.com/app',
  streamKey: 'key',
  createdTime: 0,
};

function row(state: TaskRow['state']): TaskRow {
  const name = { kind: 'push', vhost: 'default', app: 'app', id: 'p' };
  return { name, definition: { spec: asJson(SPEC), persistent: true, stored: false }, state, report: undefined };
}

test('a push that waits is ready, and one whose node does not answer says so', (t) => {
  t.like(pushTask(row('waiting')), { state: 'ready', reason: undefined });
  t.like(pushTask(row('unknown')), { state: 'error', reason: 'the node that pushes the stream does not answer' });
});
