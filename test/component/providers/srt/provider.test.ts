import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { SrtProviderConfig } from '../../../../src/config/model.ts';
import { TsMuxer } from '../../../../src/containers/mpegts/muxer.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { InputStream } from '../../../../src/core/input-stream.ts';
import { SrtProvider } from '../../../../src/providers/srt/index.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { codedPackets, tracksOf } from '../../../support/media/coded-packets.ts';
import { addVhost } from '../../../support/server/live.ts';
import { freePorts } from '../../../support/network/ports.ts';
import { SrtCaller } from '../../../support/srt/caller.ts';
import { UdpRelay } from '../../../support/network/udp-relay.ts';
import { until } from '../../../support/time/until.ts';

const MESSAGE = 7 * 188;
/** Of messages that the way to the server loses, each time they are sent. */
const LOST_MESSAGE = 4 * 188;
const SRT_HEADER = 16;
const PROVIDER: SrtProviderConfig = {
  blockDuplicateStreamName: true,
  maxConnection: 0,
  timestampMode: 'Original',
  packetSilenceTimeoutMs: 0,
  audioMap: [],
};

async function start(t: ExecutionContext, latency = 60) {
  const registry = new Registry();
  addVhost(registry, { providers: { srt: PROVIDER }, publishers: {} });
  const inputs: InputStream[] = [];
  const packets: Packet[] = [];
  registry.on('input', (input) => {
    inputs.push(input);
    input.read({ packet: (packet) => void packets.push(packet) });
  });
  const { cluster, access } = await aloneWith(registry);
  const [port = 0] = freePorts(1);
  const lines: string[] = [];
  const provider = await SrtProvider.listen({
    access,
    log: pino({}, { write: (line: string) => void lines.push(line) }),
    ip: ['127.0.0.1'],
    bind: {
      port: [{ first: port, last: port }],
      streamMap: [],
      options: [{ key: 'SRTO_LATENCY', value: String(latency) }],
    },
  });
  t.teardown(async () => {
    registry.close('the test is over');
    await provider.close();
    await cluster.close();
  });
  return { port, provider, registry, inputs, packets, lines };
}

const pictures = (packets: readonly Packet[]): Buffer[] =>
  packets.flatMap(({ track, data }) => (track.type === 'video' ? [data] : []));

/** Pictures of which each is larger than what is lost. */
function large(seconds: number): { sent: Packet[]; ts: Buffer[] } {
  const sent = codedPackets({ video: { codec: 'H264', size: '640x360', gop: 5 }, seconds });
  const muxer = new TsMuxer(tracksOf(sent));
  return { sent, ts: sent.map((packet) => muxer.write(packet)) };
}

test.serial('a picture of which sixteen transport packets are missing is none', async (t) => {
  const { port, packets, inputs } = await start(t);
  const relay = await UdpRelay.open(
    port,
    () =>
      ({ length }) =>
        length === SRT_HEADER + LOST_MESSAGE ? [] : [0],
  );
  t.teardown(() => relay.close());
  // encoded before the call: it blocks this process, and a caller whose datagrams are not passed on for 5 s is taken for gone
  const { sent, ts } = large(2);
  const call = await new SrtCaller(t).call(relay.port, { streamId: 'default/app/talk' });
  // behind the first key frame, which it goes live with; the counters of its PID go on as if nothing were missing
  const torn = ts.findIndex((unit, i) => i > 8 && unit.length > 30 * 188);
  const from = 10 * 188;
  const pieces = ts.flatMap((unit, i) =>
    i !== torn
      ? [unit]
      : [
          unit.subarray(0, from),
          ...Array.from({ length: 4 }, (_, n) => unit.subarray(from + n * LOST_MESSAGE, from + (n + 1) * LOST_MESSAGE)),
          unit.subarray(from + 4 * LOST_MESSAGE),
        ],
  );
  for (const piece of pieces) {
    // what is left of a unit may have the length that is lost
    const isLost = piece.length === LOST_MESSAGE;
    for (let at = 0; at < piece.length;) {
      const rest = piece.length - at;
      const length =
        !isLost && rest === LOST_MESSAGE
          ? 188
          : !isLost && rest === LOST_MESSAGE + MESSAGE
            ? 188
            : Math.min(rest, MESSAGE);
      await call.send(piece.subarray(at, at + length));
      at += length;
    }
  }
  const before = sent.map(({ data }) => data);
  await until(
    'what is behind it comes',
    () => packets.length > 0 && pictures(packets).some((data) => data.equals(before.at(-3) as Buffer)),
  );
  t.true(
    pictures(packets).every((data) => before.some((one) => one.equals(data))),
    'each as it was',
  );
  t.false(pictures(packets).some((data) => data.equals(before[torn] as Buffer)));
  t.true(relay.counts.toServer.lost >= 4);
  t.is(inputs[0]?.counters.lostPackets, 4);
});

test.serial('the last picture comes, however long the latency is, before the stream ends', async (t) => {
  const { port, packets, inputs } = await start(t, 500);
  const call = await new SrtCaller(t).call(port, { streamId: 'default/app/talk' });
  const { sent, ts } = large(1);
  const last = ts.at(-1) as Buffer;
  // of open length, it is told from what follows where it ends
  last.writeUInt16BE(0, last.indexOf('000001e0', 'hex') + 4);
  await call.send(Buffer.concat(ts));
  await until('it has gone out', async () => (await call.unsent()) === 0);
  await call.close();
  await until('the stream has ended', () => inputs[0]?.closed === true);
  const came = pictures(packets);
  t.is(came.length, sent.length);
  t.true(came.every((data, i) => data.equals(sent[i]?.data as Buffer)));
});

test.serial('callers who send no media give way to others, and those who publish stay', async (t) => {
  const { port, provider, inputs, lines } = await start(t);
  const publisher = await new SrtCaller(t).call(port, { streamId: 'default/app/talk' });
  await publisher.send(Buffer.concat(large(1).ts));
  await until('it is live', () => inputs.length === 1);
  const caller = new SrtCaller(t);
  let given: string[] = [];
  await until('one gives way', async () => {
    // those of an attempt that took longer than they may wait for media
    await until('the publisher is alone', () => provider.sessions === 1);
    const silent = await caller.call(port, { streamId: 'default/app/first' });
    await until('it is in', () => provider.sessions === 2);
    const others = Array.from({ length: 256 }, (_, i) => caller.call(port, { streamId: `default/app/other${i}` }));
    for (const { refused } of await Promise.all(others)) t.is(refused, 0);
    await until('the first of them is out', async () => !(await silent.connected()));
    given = lines.filter((line) => line.includes('too many connections wait to publish'));
    return given.length > 0;
  });
  t.is(given.length, 1);
  t.regex(given[0] ?? '', /"stream":"first"/);
  t.true(await publisher.connected());
});

test.serial('a publisher who is back before its end was played gets its name', async (t) => {
  const { port, inputs } = await start(t, 8000);
  const caller = new SrtCaller(t);
  const first = await caller.call(port, { streamId: 'default/app/talk' });
  await first.send(Buffer.concat(large(1).ts));
  await until('it is live', () => inputs.length === 1);
  t.is((await caller.call(port, { streamId: 'default/app/talk' })).refused, 1409);
  await first.send(Buffer.alloc(MESSAGE, 0x47));
  await until('it has gone out', async () => (await first.unsent()) === 0);
  await first.close();
  // as soon as it is known that it has left
  await until(
    'it is in again',
    async () => (await caller.call(port, { streamId: 'default/app/talk' })).refused === 0,
    7000,
  );
  await until('the other has ended', () => inputs[0]?.closed === true);
});
