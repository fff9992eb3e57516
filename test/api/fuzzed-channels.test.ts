import test from 'ava';
import { readMultiplexSpec } from '../../src/channels/multiplex/spec.ts';
import { readScheduleSpec } from '../../src/channels/scheduled/spec.ts';
import { Random } from '../soak/random.ts';
import { openChannelApi } from '../support/channels/channels.ts';
import { MULTIPLEX, mutated, programsGiven, SCHEDULE } from '../support/channels/odd-channels.ts';

const COUNT = 500;
const SEED = Number(process.env.KILN_SEED ?? 1);

interface Named {
  readonly name: string;
}

for (const { kind, body, head, read } of [
  { kind: 'scheduled', body: SCHEDULE, head: 'stream', read: readScheduleSpec },
  { kind: 'multiplex', body: MULTIPLEX, head: 'outputStream', read: readMultiplexSpec },
] as const) {
  test(`any definition of a ${kind} channel is refused as wrong, or kept as it was read: seed ${SEED}`, async (t) => {
    const { call, tasks } = await openChannelApi(t);
    const random = new Random(SEED);
    const list = `app/${kind}Channels`;
    const counts = { 201: 0, 400: 0 };
    for (let n = 0; n < COUNT; n++) {
      const given = mutated(random, body);
      const { status, text } = await call('POST', list, given);
      if (status !== 201 && status !== 400) return t.fail(`${status}: ${text} for ${JSON.stringify(given)}`);
      counts[status] += 1;
      if (status === 400) continue;
      const [id = ''] = (await call('GET', list)).body?.response as string[];
      const one = `${list}/${encodeURIComponent(id)}`;
      const name = { kind, vhost: 'default', app: 'app', id };
      const spec = read(tasks.definitions.get(name)?.spec);
      if (spec === undefined) return t.fail(`not readable: ${JSON.stringify(given)}`);
      const shown = (await call('GET', one)).body?.response as Record<string, Named>;
      if (shown[head]?.name !== id) return t.fail(`shown otherwise: ${JSON.stringify(shown)}`);
      const again = { ...shown, ...programsGiven(spec), [head]: { ...shown[head], name: 'again' } };
      if ((await call('POST', list, again)).status !== 201) return t.fail(`not again: ${JSON.stringify(again)}`);
      t.deepEqual(tasks.definitions.get({ ...name, id: 'again' })?.spec, spec as never);
      for (const path of [one, `${list}/again`]) await call('DELETE', path);
    }
    t.log(counts);
    t.true(counts[201] > COUNT / 20 && counts[400] > COUNT / 20);
    t.deepEqual((await call('GET', list)).body?.response, []);
  });
}
