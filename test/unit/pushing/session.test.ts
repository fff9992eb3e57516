import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { BitstreamError } from '../../../src/codecs/bits.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { PushSession } from '../../../src/pushing/session.ts';
import type { Sink } from '../../../src/pushing/sink.ts';
import { addVhost, AUDIO, goLive, VIDEO } from '../../support/server/live.ts';
import { audioTrack } from '../../support/media/packets.ts';
import { videoTrack } from '../../support/media/packets.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

/** A destination that takes packets as the test says. */
class FakeSink implements Sink {
  readonly isSingle = true;
  readonly takesBursts = true;
  readonly sentBytes = 0;
  readonly written: Packet[] = [];
  hasRoom = true;
  /** Codecs that it cannot carry. */
  refused: readonly string[] = [];
  malformed = false;

  objection({ codec }: Track): string | undefined {
    return this.refused.includes(codec) ? `it does not take ${codec}` : undefined;
  }

  setTracks(): void {
    if (this.malformed) throw new BitstreamError('cut off');
  }

  write(packet: Packet): boolean {
    this.written.push(packet);
    return this.hasRoom;
  }

  finish(): void {}
  close(): void {}
}

function start(
  t: ExecutionContext,
  tracks: readonly Track[],
  sink = new FakeSink(),
  before: readonly Track[] = [],
  skipsStandby = false,
) {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'live', tracks);
  const failures: string[] = [];
  const warnings: (readonly string[])[] = [];
  const session = new PushSession(sink, {
    output,
    choice: { trackIds: [], variantNames: [] },
    before,
    start: undefined,
    skipsStandby,
    faults: new FaultLog(pino({ level: 'silent' })),
    onWarnings: (told) => void warnings.push(told),
    onFail: ({ message }) => void failures.push(message),
  });
  t.teardown(() => {
    session.close();
    registry.close('the test is over');
  });
  void session.start();
  return { output, sink, session, failures, warnings };
}

/** @param at seconds */
function write(output: OutputStream, track: Track, at: number, key = true): void {
  const dts = Math.round((at * track.timebase.den) / track.timebase.num);
  output.write({ track, dts, pts: dts, duration: 1, key, data: Buffer.alloc(1000) });
}

const ofType = (packets: readonly Packet[], type: Track['type']) =>
  packets.filter(({ track }) => track.type === type).length;

test('audio goes on when the video is gone before its first key frame', (t) => {
  const { output, sink } = start(t, [VIDEO, AUDIO]);
  write(output, AUDIO, 0);
  write(output, VIDEO, 0, false);
  t.is(sink.written.length, 0);
  output.setTracks([AUDIO]);
  write(output, AUDIO, 1);
  t.is(sink.written.length, 1);
});

test('video that is added in mid-stream begins with a key frame, and audio does not wait for it', (t) => {
  const { output, sink } = start(t, [AUDIO]);
  write(output, AUDIO, 0);
  output.setTracks([VIDEO, AUDIO]);
  write(output, VIDEO, 1, false);
  write(output, AUDIO, 1);
  t.deepEqual([ofType(sink.written, 'video'), ofType(sink.written, 'audio')], [0, 2]);
  write(output, VIDEO, 2);
  write(output, VIDEO, 2.1, false);
  t.is(ofType(sink.written, 'video'), 2);
});

test('a codec that changes to one that the destination does not take leaves the other track', (t) => {
  const sink = new FakeSink();
  sink.refused = ['H265'];
  const { output, failures, warnings } = start(t, [VIDEO, AUDIO], sink);
  t.deepEqual(warnings, [[]]);
  const other = videoTrack({ codec: 'H265' });
  output.setTracks([other, AUDIO]);
  write(output, other, 0);
  write(output, AUDIO, 0);
  t.deepEqual([ofType(sink.written, 'video'), ofType(sink.written, 'audio')], [0, 1]);
  t.regex(warnings.at(-1)?.join() ?? '', /left out: it does not take H265/);
  output.setTracks([other]);
  t.deepEqual(failures, ['the stream has no track that can be pushed there']);
});

test('a configuration that cannot be sent ends the connection, and not the stream', (t) => {
  const { output, sink, failures } = start(t, [VIDEO, AUDIO]);
  sink.malformed = true;
  output.setTracks([{ ...VIDEO }, AUDIO]);
  t.deepEqual(failures, ['the configuration of a track cannot be sent: cut off']);
});

/** Ten frames a second, every twentieth a key frame, to a destination that takes so many of ten. */
async function stream(
  { output, session, sink, failures }: ReturnType<typeof start>,
  seconds: number,
  taken: (second: number) => number,
) {
  sink.hasRoom = false;
  for (let n = 0; n < seconds * 10 && failures.length === 0; n++) {
    write(output, VIDEO, n / 10, n % 20 === 0);
    await delay(100);
    if (n % 10 < taken(n / 10)) session.resume();
  }
}

test('a destination that stays too slow misses what is before key frames, and is given up 10 s later', async (t) => {
  virtualTime(t);
  const pushed = start(t, [VIDEO]);
  await stream(pushed, 120, () => 5);
  t.deepEqual(pushed.failures, ['the destination has been too slow for 10 s']);
  const { written } = pushed.sink;
  const missed = written.findIndex(({ dts }, at) => at > 0 && dts - (written[at - 1] as Packet).dts > 9000);
  t.true(missed > 0);
  t.true(written[missed]?.key);
});

test('a destination that catches up after a slow while is kept', async (t) => {
  virtualTime(t);
  const pushed = start(t, [VIDEO]);
  const { session, sink } = pushed;
  await stream(pushed, 20, () => 0);
  sink.hasRoom = true;
  session.resume();
  await delay(1000);
  await stream(pushed, 12, () => 10);
  t.deepEqual(pushed.failures, []);
  t.true(sink.written.some(({ key }, at) => at > 0 && key));
});

test("the source's own track is sent, unless the connection before has sent another", (t) => {
  const encoded = audioTrack({ id: 1, name: 'encoded', bypass: false });
  const own = audioTrack({ id: 2, name: 'own' });
  for (const isSingle of [false, true]) {
    const sink = () => Object.assign(new FakeSink(), { isSingle });
    t.deepEqual(start(t, [encoded, own], sink()).session.tracks, [own]);
    const first = start(t, [encoded], sink());
    first.output.setTracks([encoded, own]);
    t.deepEqual(first.session.tracks, [encoded]);
    t.deepEqual(start(t, [encoded, own], sink(), first.session.tracks).session.tracks, [encoded]);
    first.output.setTracks([own]);
    t.deepEqual(first.session.tracks, [own]);
  }
});

test('what is shown while the publisher is away is not sent where it is left out, and it goes on with a key frame', (t) => {
  for (const isSkipped of [true, false]) {
    const { output, sink } = start(t, [VIDEO, AUDIO], new FakeSink(), [], isSkipped);
    const { standby } = output.input;
    write(output, VIDEO, 0);
    standby.begin(1);
    write(output, VIDEO, 1);
    write(output, AUDIO, 1);
    t.is(sink.written.length, isSkipped ? 1 : 3);
    standby.end(2);
    write(output, AUDIO, 2);
    write(output, VIDEO, 2, false);
    t.is(sink.written.length, isSkipped ? 1 : 5);
    write(output, VIDEO, 3);
    write(output, AUDIO, 3);
    t.is(sink.written.length, isSkipped ? 3 : 7);
  }
});
