import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Guard } from '../../../src/access/guard.ts';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { TsMuxer } from '../../../src/containers/mpegts/muxer.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import { SrtProvider } from '../../../src/providers/srt/index.ts';
import { SrtPublisher } from '../../../src/publishers/srt/index.ts';
import { askedByHand, denied, notedSessions, WEBHOOK_SESSION } from '../../support/access/access.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { codedPackets, tracksOf } from '../../support/media/coded-packets.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { freePorts } from '../../support/network/ports.ts';
import { SrtCaller } from '../../support/srt/caller.ts';
import { until } from '../../support/time/until.ts';

const CONFIG = {
  providers: { srt: { blockDuplicateStreamName: true, maxConnection: 0, timestampMode: 'Original', audioMap: [] } },
  publishers: { srt: { maxConnection: 0 } },
} as unknown as Pick<ApplicationConfig, 'providers' | 'publishers'>;

/** Ports to publish to and to play from, a stream `talk` to play, and a guard who decides about everybody. */
async function start(t: ExecutionContext, guard: Guard) {
  const registry = new Registry();
  addVhost(registry, CONFIG);
  const inputs: InputStream[] = [];
  const received: Packet[] = [];
  registry.on('input', (input) => {
    if (input.source.kind !== 'srt') return;
    inputs.push(input);
    input.read({ packet: (packet) => void received.push(packet) });
  });
  const ends: string[] = [];
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const { cluster, access } = await aloneWith(registry, { log, guards: [guard], webhookSessions: notedSessions(ends) });
  const [publish = 0, play = 0] = freePorts(2);
  const common = { registry, access, log, ip: ['127.0.0.1'] };
  const bind = (port: number) => ({ port: [{ first: port, last: port }], streamMap: [], options: [] });
  const provider = await SrtProvider.listen({ ...common, bind: bind(publish) });
  const publisher = await SrtPublisher.listen({ ...common, bind: bind(play) });
  t.teardown(async () => {
    registry.close('the test is over');
    await provider.close();
    await publisher.close();
    await cluster.close();
  });
  const packets = codedPackets({ video: { codec: 'H264', gop: 10 }, seconds: 1 });
  const output = goLive(registry, 'app', 'talk', tracksOf(packets));
  registry.vhosts.get('default')?.applications.get('app')?.announce(output);
  const caller = new SrtCaller(t);
  const muxer = new TsMuxer(tracksOf(packets));
  return {
    ends,
    inputs,
    received,
    output,
    provider,
    packets,
    ts: Buffer.concat(packets.map((packet) => muxer.write(packet))),
    publish: (name = 'mine') => caller.call(publish, { streamId: `default/app/${name}` }),
    play: (name = 'talk') => caller.call(play, { streamId: `default/app/${name}` }),
    refusals: () => lines.filter((line) => line.includes('"client.refused"')).length,
  };
}

test.serial('an SRT request that can be decided at once is decided in the handshake', async (t) => {
  const { publish, play, ends, refusals } = await start(t, () => {
    throw denied();
  });
  t.is((await publish()).refused, 1401);
  t.is((await play()).refused, 1401);
  t.deepEqual(ends, []);
  t.is(refusals(), 2);
});

test.serial('a publisher is accepted before the answer, and what it sends meanwhile is held', async (t) => {
  const { guard, questions } = askedByHand();
  const { publish, packets, received, ts, ends } = await start(t, guard);
  const call = await publish();
  t.is(call.refused, 0);
  const question = await until('the question', () => questions[0]);
  await call.send(ts);
  await until('the server has it', async () => (await call.unsent()) === 0);
  t.deepEqual(received, []);
  question.admit();
  // the last one is complete when another begins
  await until('all that was sent', () => received.length >= packets.length - 1);
  t.true(received[0]?.data.equals(packets[0]?.data as Buffer));
  await call.close();
  await until('its guard is told', () => ends.length === 1);
});

test.serial(
  'an SRT client that is rejected after its connection was accepted is disconnected, and logged',
  async (t) => {
    const { guard, questions } = askedByHand();
    const { publish, play, ends, refusals, output, inputs } = await start(t, guard);
    for (const begin of [publish, play]) {
      const call = await begin();
      t.is(call.refused, 0);
      (await until('the question', () => questions.pop())).refuse();
      await until('it is disconnected', async () => !(await call.connected()));
    }
    t.deepEqual(ends, []);
    t.is(refusals(), 2);
    t.is(output.sessions.size, 0);
    t.deepEqual(inputs, []);
  },
);

test.serial(
  'an SRT client that leaves before guards answer is noticed, and what they open later is closed',
  async (t) => {
    const { guard, questions } = askedByHand();
    const { publish, play, ends, output, provider } = await start(t, guard);
    for (const begin of [publish, play]) {
      const call = await begin();
      await until('the question', () => questions.length > 0);
      await call.close();
      const question = await until('its question ends', () => questions.find(({ signal }) => signal?.aborted));
      t.deepEqual(ends, []);
      question.admit();
      await until('what it opened is closed', () => ends.length === 1);
      questions.length = 0;
      ends.length = 0;
    }
    t.is(provider.sessions, 0);
    t.is(output.sessions.size, 0);
  },
);

test.serial('an SRT client whose time is over is disconnected, and its guard is notified once', async (t) => {
  const guard: Guard = () => async () => ({ until: Date.now() + 3000, session: WEBHOOK_SESSION });
  const { publish, play, ends, inputs, ts, output } = await start(t, guard);
  const publisher = await publish();
  await publisher.send(ts);
  const viewer = await play();
  for (const call of [publisher, viewer]) await until('it is disconnected', async () => !(await call.connected()));
  t.deepEqual(ends, ['its allowed time is over', 'its allowed time is over']);
  t.true(inputs.every(({ closed }) => closed));
  t.is(output.sessions.size, 0);
});

test.serial('callers are sent to other streams', async (t) => {
  const guard: Guard =
    ({ direction }) =>
    async () => ({ target: { app: 'app', stream: direction === 'incoming' ? 'moved' : 'talk' } });
  const { publish, play, inputs, ts, output } = await start(t, guard);
  const call = await publish('asked');
  await call.send(ts);
  await until('its stream', () => inputs[0]);
  t.is(inputs[0]?.name, 'moved');
  t.is((await play('asked')).refused, 0);
  await until('it plays', () => output.sessions.size === 1);
});

test.serial('two hundred callers who come at once wait for their answers together', async (t) => {
  const { guard, questions } = askedByHand();
  const { publish, inputs, provider, ts } = await start(t, guard);
  const calls = await Promise.all(Array.from({ length: 200 }, (_, n) => publish(`stream${n}`)));
  t.true(calls.every(({ refused }) => refused === 0));
  await until('all questions', () => questions.length === 200);
  t.is(provider.sessions, 200);
  t.true(questions.every(({ signal }) => signal?.aborted === false));
  for (const question of questions) question.admit();
  for (const call of [calls[0], calls[199]]) await call?.send(ts);
  await until('the streams of the first and the last', () => inputs.length === 2);
});

test.serial('a caller who sends more than is held is admitted all the same', async (t) => {
  const { guard, questions } = askedByHand();
  const { publish, packets, received, ts } = await start(t, guard);
  const call = await publish();
  const question = await until('the question', () => questions[0]);
  const noise = Buffer.alloc(1316, 0x47);
  for (let sent = 0; sent < 20; sent++) {
    await call.send(Buffer.concat(Array.from({ length: 800 }, () => noise)));
    await until('the server has it', async () => (await call.unsent()) === 0);
  }
  question.admit();
  await call.send(ts);
  await until('what came last', () => received.length >= packets.length - 1);
  t.is(call.refused, 0);
});
