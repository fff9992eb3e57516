import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import * as h265 from '../../../../src/codecs/h265.ts';
import { joinNals, nalUnits } from '../../../../src/codecs/nal.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { RtpClock } from '../../../../src/protocols/rtp/receive/clock.ts';
import type { MediaUnit } from '../../../../src/providers/intake/media-unit.ts';
import { VideoIntake } from '../../../../src/providers/intake/video-intake.ts';
import { RtpLane } from '../../../../src/providers/rtp/lane.ts';
import { annexB, h264Pps, h264Slice, h264Sps } from '../../../support/media/nal-build.ts';
import { box, samples, vector } from '../../codecs/vectors.ts';

interface Sent {
  readonly lane: RtpLane;
  readonly units: MediaUnit[];
  readonly faults: () => string[];
  /** A packet for each unit. */
  frame(timestamp: number, nals: readonly Buffer[], markers?: 'last' | 'all'): void;
}

function setUp(t: ExecutionContext, codec: 'H264' | 'H265'): Sent {
  const lines: string[] = [];
  const faults = new FaultLog(pino({}, { write: (line: string) => void lines.push(String(JSON.parse(line).msg)) }));
  t.teardown(() => faults.close());
  const units: MediaUnit[] = [];
  let sequence = 0;
  const lane: RtpLane = new RtpLane({
    kind: 'video',
    format: { encoding: codec, clockRate: 90_000, parameters: {} },
    waitMs: 0,
    faults,
    source: new VideoIntake({ id: 0, codec }),
    clock: new RtpClock(true).track(90_000, true),
    onEvent: (event) => {
      const unit = lane.unit(event);
      if (unit !== undefined) units.push(unit);
    },
    onLost: () => t.fail(),
  });
  return {
    lane,
    units,
    faults: () => {
      faults.close();
      return lines;
    },
    frame: (timestamp, nals, markers = 'last') => {
      for (const [i, payload] of nals.entries()) {
        const marker = markers === 'all' || i === nals.length - 1;
        const head = { payloadType: 96, ssrc: 1, sequence: sequence++ & 0xffff, timestamp, marker };
        lane.push({ ...head, payload: Buffer.from(payload) }, timestamp / 90);
      }
    },
  };
}

const idr = h264Slice({ idr: true });
const later = (i: number) => h264Slice({ frame: i, order: 2 * i });

for (const [name, sets, markers] of [
  ['one tick apart', [-2, -1], 'last'],
  ['13 ms apart', [-2340, -1170], 'last'],
  ['at the time of the picture, with markers', [0, 0], 'all'],
] as const) {
  test(`parameter sets as frames of their own, ${name}`, (t) => {
    const { units, faults, frame } = setUp(t, 'H264');
    // joined in the middle of a GOP
    for (let i = 1; i < 5; i++) frame(i * 3600, [later(i)]);
    for (let at = 5; at < 25; at++) {
      if (at % 5 === 0) {
        const nals = [h264Sps(), h264Pps()];
        for (const [i, shift] of sets.entries()) frame(at * 3600 + shift, [nals[i] as Buffer], markers);
      }
      frame(at * 3600, [at % 5 === 0 ? idr : later(at % 5)]);
    }
    t.is(units.length, 20);
    t.deepEqual(
      units.map(({ data }) => data),
      units.map((_, i) => joinNals([i % 5 === 0 ? idr : later(i % 5)])),
    );
    t.deepEqual(
      units.flatMap(({ key }, i) => (key ? [i] : [])),
      [0, 5, 10, 15],
    );
    t.deepEqual(
      faults().filter((line) => !line.includes('cannot be decoded')),
      [],
    );
  });
}

test('parameter sets of H.265 as frames of their own', (t) => {
  const { vps, sps, pps } = h265.parseHevcConfig(box(vector('h265-main.mp4'), 'hvcC'));
  const [unit] = samples(vector('h265-main.mp4')) as [Buffer];
  const picture = [...nalUnits(h265.canonicalize(unit, 4).data)];
  const { units, faults, frame } = setUp(t, 'H265');
  for (const [i, nal] of [...vps, ...sps, ...pps].entries()) frame(3600 + i, [nal]);
  frame(3700, picture);
  t.deepEqual(
    units.map(({ data }) => data),
    [joinNals(picture)],
  );
  t.deepEqual(faults(), []);
});

test('a byte stream in one unit, and start codes in front of each', (t) => {
  const gop = [[h264Sps(), h264Pps(), idr], [later(1)], [later(2)]];
  const ways = {
    one: (nals: readonly Buffer[]) => [annexB(nals).subarray(4)],
    'one, with a code in front': (nals: readonly Buffer[]) => [annexB(nals)],
    'each with a code': (nals: readonly Buffer[]) => nals.map((nal) => annexB([nal])),
    'PPS first': ([sps, pps, ...rest]: readonly Buffer[]) =>
      pps === undefined ? [sps as Buffer] : [annexB([pps, sps as Buffer, ...rest]).subarray(4)],
  };
  for (const [name, way] of Object.entries(ways)) {
    const { units, faults, frame } = setUp(t, 'H264');
    for (let round = 0; round < 2; round++)
      for (const [i, nals] of gop.entries()) frame((round * 3 + i) * 3600, way(nals));
    t.is(units.length, 6, name);
    t.deepEqual(
      units.map(({ data, key }) => [[...nalUnits(data)], key]),
      [...gop, ...gop].map((nals) => [nals.slice(-1), nals.length > 1]),
      name,
    );
    t.deepEqual(faults(), [], name);
  }
});

test('pictures without a key frame are left out for some seconds, and a key frame is asked for all the time', (t) => {
  const { lane, units, frame } = setUp(t, 'H264');
  for (let i = 1; i < 200; i++) {
    frame(i * 3600, i === 1 ? [h264Sps(), h264Pps(), later(i)] : [later(i)]);
    t.true(lane.broken);
  }
  t.is(units[0]?.time, 126 * 3600 - 3600);
  t.is(units.length, 199 - 125);
});
