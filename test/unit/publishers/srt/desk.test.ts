import test from 'ava';
import { Registry } from '../../../../src/core/registry.ts';
import { SrtDesk } from '../../../../src/publishers/srt/desk.ts';
import { addDefaultPlaylist } from '../../../../src/publishers/srt/selection.ts';
import { aloneWith } from '../../../support/alone.ts';
import { addVhost, goLive } from '../../../support/live.ts';

/** A desk with a stream `live`, for so many viewers of its application. */
async function open(maxConnection: number) {
  const registry = new Registry();
  addVhost(registry, { publishers: { srt: { maxConnection } as never } });
  const output = goLive(registry, 'app', 'live');
  addDefaultPlaylist(output);
  const { sessionNames } = await aloneWith(registry);
  const desk = new SrtDesk({ registry, find: async () => undefined, sessionNames });
  const id = { host: 'default', app: 'app', stream: 'live', query: new URLSearchParams() };
  return { desk, output, id };
}

test('no more viewers come in than MaxConnection allows, and another when one has gone', async (t) => {
  const { desk, output, id } = await open(2);
  const [one] = [output.counters.viewer('srt'), output.counters.viewer('srt')];
  const full = { code: 'tooManyConnections' };
  t.throws(() => desk.checkHere(id), full);
  await t.throwsAsync(desk.admit(id), full);
  one();
  t.notThrows(() => desk.checkHere(id));
  t.is((await desk.admit(id)).output, output);
});

test('0 is any number, and viewers of other kinds do not count', async (t) => {
  const { desk, output, id } = await open(0);
  for (let i = 0; i < 10; i++) output.counters.viewer('srt');
  t.notThrows(() => desk.checkHere(id));
  const narrow = await open(1);
  narrow.output.counters.viewer('webrtc');
  t.notThrows(() => narrow.desk.checkHere(narrow.id));
});
