import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { verify } from '../../src/management/audit/verify.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { until } from '../support/time/until.ts';

interface Line {
  readonly node: string;
  readonly path?: string;
  readonly user?: string;
  readonly remote?: string;
  readonly status?: number;
  readonly requestId?: string;
  readonly takenBy?: string;
  readonly answeredBy?: string;
}

test("a call that is forwarded is sealed on both nodes, with its caller and the caller's address", async (t) => {
  const redis = await usedRedis(t);
  const folder = mkdtempSync(join(tmpdir(), 'kiln-audit-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = (id: string): string => join(folder, `${id}.log`);
  const start = (id: string): Promise<Kiln> =>
    startNode(t, redis, id, { api: `<AuditLog><Path>${file(id)}</Path><Key>sealed</Key></AuditLog>` });
  const [a, b] = await Promise.all([start('a'), start('b')]);
  await untilStates(a, { a: 'ready', b: 'ready' });
  const texts = (id: string): string[] => readFileSync(file(id), 'utf8').split('\n').filter(Boolean);
  const calls = (id: string): Line[] => texts(id).map((text) => JSON.parse(text) as Line);
  await PictureClient.publish(b, 'live');
  await a.liveStream('live');
  const path = '/v1/vhosts/default/apps/app/streams/live';
  const answer = await a.api(path, 'DELETE');
  t.is(answer.status, 200);
  t.is((await a.api('/v1/cluster/nodes/b:drain', 'POST')).status, 200);
  const find = (id: string, of: string): Promise<Line> =>
    until(`${id} has written ${of}`, () => calls(id).find((line) => line.path === of));
  const common = {
    user: 'access token',
    remote: '127.0.0.1',
    status: 200,
    requestId: answer.headers.get('x-request-id') ?? '',
  };
  t.like(await find('a', path), { node: 'a', answeredBy: 'b', ...common });
  t.like(await find('b', path), { node: 'b', takenBy: 'a', ...common });
  t.is((await find('a', '/v1/cluster/nodes/b:drain')).status, 200);
  for (const id of ['a', 'b']) t.is((await verify([{ name: id, lines: texts(id) }], ['sealed'])).broken, undefined);
  t.notRegex(a.log + b.log, /sealed/);
});
