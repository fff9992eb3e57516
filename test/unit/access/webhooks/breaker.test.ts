import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { ControlServerError } from '../../../../src/control-server/post.ts';
import { Breaker } from '../../../../src/access/webhooks/breaker.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

/** A breaker of a server that is dead until `alive` is set; `calls` reach it, and `heard` is what is told. */
function breaker(t: ExecutionContext) {
  virtualTime(t);
  const server = { alive: false, calls: 0, heard: [] as string[] };
  const { heard } = server;
  const one = new Breaker({ onOpen: (reason) => heard.push(reason), onClose: () => heard.push('back') });
  const call = async (): Promise<string> => {
    server.calls++;
    await delay(10);
    if (!server.alive) throw new ControlServerError('dead', false);
    return 'answer';
  };
  return { server, one, ask: () => one.run(call).catch((error: Error) => error.message) };
}

test.serial(
  'a server that does not answer is asked by one call now and then only, until it answers again',
  async (t) => {
    const { server, ask } = breaker(t);
    t.deepEqual(new Set(await Promise.all(Array.from({ length: 50 }, ask))), new Set(['dead']));
    t.deepEqual(server.heard, ['dead'], 'told once');
    t.is(await ask(), 'it did not answer before, and is not asked now');
    t.is(server.calls, 50);
    for (let at = 0; at < 600; at++) {
      await delay(100);
      await Promise.all([ask(), ask()]);
    }
    const probes = server.calls - 50;
    t.true(probes >= 6 && probes <= 12, `${probes} in a minute: 0.25 s apart at first, 10 s at last`);
    t.is(server.heard.length, 1);
    server.alive = true;
    while ((await ask()) !== 'answer') await delay(100);
    t.deepEqual(server.heard, ['dead', 'back']);
    t.deepEqual(new Set(await Promise.all([ask(), ask(), ask()])), new Set(['answer']));
  },
);

test.serial('calls that fail one at a time, and answers that are at fault, do not open it', async (t) => {
  const { server, one, ask } = breaker(t);
  for (let round = 0; round < 20; round++) {
    server.alive = round % 4 === 3;
    await ask();
    await t.throwsAsync(
      one.run(async () => {
        throw new ControlServerError('it is no JSON', true);
      }),
      { message: 'it is no JSON' },
    );
  }
  t.deepEqual(server.heard, []);
});
