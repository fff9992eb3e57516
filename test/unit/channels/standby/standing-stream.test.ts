import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Slate, SlateWish } from '../../../../src/channels/standby/slates.ts';
import { StandingStream } from '../../../../src/channels/standby/standing-stream.ts';
import { Counters } from '../../../../src/core/counters.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Source } from '../../../../src/core/source.ts';
import type { MediaTrack, Track } from '../../../../src/core/track.ts';
import { VirtualClock } from '../../../support/channels/virtual-channel.ts';
import { writeSlate } from '../../../support/channels/slate-file.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { until } from '../../../support/time/until.ts';

const RTMP: Source = { type: 'Rtmp', kind: 'rtmp', url: 'rtmp://host/app/live', connection: () => undefined };
const SRT: Source = { type: 'SRT', kind: 'srt' };
const [VIDEO, AUDIO] = [videoTrack(), audioTrack()];
const SLATE_WIDTH = 320;

interface Options {
  readonly prepare?: (wish: SlateWish) => Promise<Slate>;
  readonly isOff?: () => boolean;
  readonly silenceTimeoutMs?: number;
  readonly maxDuration?: number;
}

async function open(t: ExecutionContext, options: Options = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-standby-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const clock = new VirtualClock(0);
  const counters = new Counters();
  const stream = new InputStream('live', RTMP, counters, { hasStandby: true });
  const wishes: SlateWish[] = [];
  const encode = async (wish: SlateWish): Promise<Slate> => {
    wishes.push(wish);
    const tracks = wish.tracks.map(({ track }) => track);
    const path = join(folder, `${wishes.length}.nut`);
    await writeSlate(path, tracks, 2);
    return { path, tracks };
  };
  const standing = new StandingStream({
    ...{ stream, clock, prepare: options.prepare ?? encode, isOff: options.isOff ?? (() => false) },
    config: {
      ...{ enable: true, text: 'soon', silenceTimeoutMs: options.silenceTimeoutMs ?? 0 },
      maxDuration: options.maxDuration ?? 0,
    },
    log: pino({ enabled: false }),
  });
  t.teardown(() => stream.close('the test is over'));
  const packets: Packet[] = [];
  stream.read({ packet: (packet) => void packets.push(packet) });
  const widths = () => packets.flatMap(({ track }) => ('width' in track ? [track.width] : []));
  const slate = () =>
    until('the slate is shown', () => {
      clock.run(100);
      return packets.some(({ track }) => 'width' in track && track.width === SLATE_WIDTH);
    });
  return { clock, counters, stream, standing, packets, widths, wishes, encode, slate };
}

/** A publisher sends some seconds, at once. */
function send(input: InputStream, tracks: readonly MediaTrack[], to = 1, from = 0): void {
  if (from === 0) input.setTracks(tracks);
  writeMedia(input, tracks, from, to);
}

function writeMedia(input: InputStream, tracks: readonly MediaTrack[], from: number, to: number): void {
  const lists = tracks.map((track) =>
    track.type === 'video' ? videoPackets(track, { from, to }) : audioPackets(track, { from, to }),
  );
  for (const packet of interleaved(...lists))
    input.write({ ...packet, duration: packet.track.type === 'audio' ? 1024 : 0 });
}

/** Times of a track, in milliseconds. */
function timesOf(packets: readonly Packet[], type: Track['type']): number[] {
  return packets
    .filter(({ track }) => track.type === type)
    .map(({ dts, track: { timebase } }) => (1000 * dts * timebase.num) / timebase.den);
}

function steps(times: readonly number[]): number[] {
  return times.slice(1).map((time, index) => time - (times[index] as number));
}

test('a stream shows its publisher, a slate when that has left, and its next publisher from a key frame on', async (t) => {
  const { clock, stream, standing, packets, widths, slate } = await open(t);
  const first = standing.take(RTMP);
  send(first, [VIDEO, AUDIO]);
  t.false(stream.isVacant);
  clock.run(1000);
  first.close('the publisher left');
  t.true(stream.isVacant);
  await slate();
  clock.run(1000);
  t.false(stream.closed);
  const second = standing.take(SRT);
  second.setTracks([VIDEO, AUDIO]);
  const [key, next] = videoPackets(VIDEO, { to: 1 }) as [Packet, Packet];
  second.write(next);
  second.write({ ...(audioPackets(AUDIO, { to: 1 })[0] as Packet), duration: 1024 });
  t.is(widths().at(-1), SLATE_WIDTH, 'nothing is shown that cannot be decoded');
  t.true(stream.isVacant);
  second.write({ ...key, dts: 9000, pts: 9000 });
  t.is(widths().at(-1), VIDEO.width);
  t.true(packets.at(-1)?.key);
  t.false(stream.isVacant);
  const count = packets.length;
  clock.run(1000);
  t.is(packets.length, count, 'the slate is over');
  const video = timesOf(packets, 'video');
  t.true(
    steps(video).every((step) => step >= 1 && step <= 100),
    String(steps(video)),
  );
  const audio = timesOf(packets, 'audio');
  t.true(
    steps(audio).every((step) => step >= 1 && step <= 100),
    String(steps(audio)),
  );
});

test('a slate has the ids and names of the tracks of the publisher, and is in their order', async (t) => {
  const { stream, standing, slate, wishes } = await open(t);
  const tracks = [audioTrack({ id: 5, name: 'talk', language: 'de' }), videoTrack({ id: 2, name: 'camera' })];
  const input = standing.take(RTMP);
  send(input, tracks);
  input.close('the publisher left');
  await slate();
  t.deepEqual(
    stream.tracks.map(({ id, name, language }) => [id, name, language]),
    [
      [2, 'camera', undefined],
      [5, 'talk', 'de'],
    ],
  );
  t.is(wishes.length, 1);
  t.is(Math.round(wishes[0]?.tracks[1]?.framerate ?? 0), 30);
});

test('a slate plays in a loop without a gap', async (t) => {
  const { clock, standing, packets, slate } = await open(t);
  const input = standing.take(RTMP);
  send(input, [VIDEO, AUDIO]);
  clock.run(1000);
  input.close('the publisher left');
  await slate();
  await until('it has begun anew twice', () => {
    clock.run(100);
    return (timesOf(packets, 'video').at(-1) ?? 0) > 7000;
  });
  for (const type of ['video', 'audio'] as const) {
    const all = steps(timesOf(packets, type));
    t.true(
      all.every((step) => step >= 1 && step <= 60),
      `${type} ${all}`,
    );
  }
  t.is(new Set(packets.map(({ track }) => track)).size, 3, 'only the video has another format, once');
});

test('a stream of audio alone goes on with a slate of audio', async (t) => {
  const { clock, stream, standing, packets } = await open(t);
  const first = standing.take(RTMP);
  send(first, [AUDIO]);
  clock.run(1000);
  first.close('the publisher left');
  const count = packets.length;
  await until('the slate is shown', () => {
    clock.run(100);
    return packets.length > count + 10;
  });
  const second = standing.take(RTMP);
  send(second, [AUDIO], 0.1);
  t.false(stream.isVacant);
  t.true(steps(timesOf(packets, 'audio')).every((step) => step >= 1 && step <= 60));
});

test('the source of a stream is that of its last publisher, without a connection while that is away', async (t) => {
  const { counters, stream, standing, slate } = await open(t);
  const first = standing.take(RTMP);
  send(first, [VIDEO]);
  t.is(stream.source, RTMP);
  t.is(counters.providers.rtmp, 1);
  first.close('the publisher left');
  await slate();
  t.deepEqual(stream.source, { type: 'Rtmp', kind: 'rtmp', url: RTMP.url as string });
  t.is(counters.providers.rtmp, 0);
  standing.take(SRT);
  t.is(stream.source, SRT);
  t.is(counters.providers.srt, 1);
});

test('a publisher that falls silent is replaced by the slate, and shown again when it goes on', async (t) => {
  const { clock, stream, standing, widths, slate } = await open(t, { silenceTimeoutMs: 100 });
  const input = standing.take(RTMP);
  send(input, [VIDEO]);
  await until('it counts as away', () => stream.isVacant);
  await slate();
  t.false(input.closed);
  const [, next] = videoPackets(VIDEO, { from: 1, to: 2 }) as [Packet, Packet];
  let wanted = 0;
  input.on('keyWanted', () => wanted++);
  input.write(next);
  writeMedia(input, [VIDEO], 2, 3);
  t.is(widths().at(-1), SLATE_WIDTH, 'what was held up on its way is old');
  t.is(wanted, 0);
  clock.run(500);
  input.write({ ...next, dts: 270_000, pts: 270_000 });
  t.is(wanted, 1);
  t.is(widths().at(-1), SLATE_WIDTH);
  writeMedia(input, [VIDEO], 4, 5);
  t.is(widths().at(-1), VIDEO.width);
  t.false(stream.isVacant);
});

test('a publisher that comes back while the slate is being encoded is shown, and the slate is not', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const made: Promise<Slate>[] = [];
  const { stream, standing, widths, clock, encode } = await open(t, {
    prepare: (wish) => {
      const slate = promise.then(() => encode(wish));
      made.push(slate);
      return slate;
    },
  });
  const first = standing.take(RTMP);
  send(first, [VIDEO]);
  first.close('the publisher left');
  t.true(stream.isVacant && standing.standsBy);
  const second = standing.take(RTMP);
  send(second, [VIDEO]);
  t.false(standing.standsBy);
  resolve();
  await Promise.all(made);
  await new Promise((done) => setImmediate(done));
  clock.run(1000);
  t.true(widths().every((width) => width === VIDEO.width));
});

test('two publishers that come back at once leave the stream to the second', async (t) => {
  const { stream, standing, slate, widths } = await open(t);
  const first = standing.take(RTMP);
  send(first, [VIDEO]);
  first.close('the publisher left');
  await slate();
  const second = standing.take(RTMP);
  const third = standing.take(SRT);
  t.true(second.closed);
  send(third, [videoTrack({ width: 1280, height: 720 })]);
  t.false(stream.closed);
  t.is(widths().at(-1), 1280);
  t.is(stream.source, SRT);
});

test('without a slate the stream ends with its publisher', async (t) => {
  const { stream, standing } = await open(t, { prepare: () => Promise.reject(new Error('AV1 cannot be encoded')) });
  const reasons: string[] = [];
  stream.on('close', (reason) => reasons.push(reason));
  const input = standing.take(RTMP);
  send(input, [VIDEO]);
  input.close('the publisher left');
  await until('it has ended', () => stream.closed);
  t.deepEqual(reasons, ['the publisher left']);
});

test('a publisher whose stream has no tracks yet ends it', async (t) => {
  const { stream, standing } = await open(t);
  standing.take(RTMP).close('it sent nothing');
  t.true(stream.closed);
});

test('a stream that hands over, or whose node drains, ends with its publisher', async (t) => {
  const off = await open(t, { isOff: () => true });
  const input = off.standing.take(RTMP);
  send(input, [VIDEO]);
  input.close('the publisher left');
  t.true(off.stream.closed);
  const moving = await open(t);
  const other = moving.standing.take(RTMP);
  send(other, [VIDEO]);
  other.handsOver = true;
  t.true(moving.stream.handsOver);
  other.close('the publisher left');
  t.true(moving.stream.closed && moving.stream.handsOver);
});

test('the end of a stream ends its publisher, and its slate', async (t) => {
  const { clock, stream, standing, packets, slate } = await open(t);
  const first = standing.take(RTMP);
  send(first, [VIDEO]);
  first.close('the publisher left');
  await slate();
  const second = standing.take(RTMP);
  stream.end('it was deleted');
  t.true(second.closed);
  t.true(second.continuity.over);
  const count = packets.length;
  clock.run(1000);
  t.is(packets.length, count);
  t.true(standing.take(RTMP).closed, 'no publisher gets a stream that has ended');
});

test('a slate ends after its longest duration', async (t) => {
  const { stream, standing } = await open(t, { maxDuration: 1 });
  const input = standing.take(RTMP);
  send(input, [VIDEO]);
  input.close('the publisher left');
  await t.notThrowsAsync(until('it has ended', () => stream.closed));
});

test('events that a publisher injects stay at their place beside its media', async (t) => {
  const { stream, standing, packets, slate } = await open(t);
  const input = standing.take(RTMP);
  send(input, [VIDEO]);
  t.true(input.inject('ID3v2', Buffer.from('one')));
  t.is(packets.at(-1)?.track.type, 'data');
  input.close('the publisher left');
  await slate();
  t.true(stream.tracks.some(({ type }) => type === 'data'));
  t.true(stream.inject('ID3v2', Buffer.from('two')), 'and the API injects beside the slate');
});

test('a stream that its publishers have brought ahead of time is there in time again after a slate', async (t) => {
  const { clock, standing, packets, slate } = await open(t);
  const input = standing.take(RTMP);
  // 3 s at once
  send(input, [VIDEO], 3);
  input.close('the publisher left');
  await slate();
  const ahead = () => (timesOf(packets, 'video').at(-1) ?? 0) - clock.monotonic();
  const before = ahead();
  t.true(before > 2500, String(before));
  await until('it is in time', () => {
    clock.run(100);
    return ahead() < before - 200;
  });
  const all = steps(timesOf(packets, 'video'));
  t.true(
    all.every((step) => step >= 1 && step <= 60),
    String(all),
  );
});
