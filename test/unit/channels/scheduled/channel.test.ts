import test from 'ava';
import { toSeconds } from '../../../../src/core/timebase.ts';
import { checkSchedule } from '../../../../src/channels/scheduled/check.ts';
import {
  item,
  schedule,
  VirtualChannel,
  type FakeFile,
  type Written,
} from '../../../support/channels/virtual-channel.ts';
import { seeded } from '../../codecs/vectors.ts';

const T0 = Date.UTC(2026, 2, 28, 22);
const FRAME_MS = 200;

/** Media time minus wall time of a packet, in milliseconds: constant where everything is where it was planned. */
function lead({ wall, packet: { dts, track } }: Written): number {
  return toSeconds(dts, track.timebase) * 1000 - wall;
}

/** Runs of packets of one file: its URL, when its first packet was written, and how many of video and audio there are. */
function runs(written: readonly Written[]): { url: string | undefined; from: number; video: number; audio: number }[] {
  const found: { url: string | undefined; from: number; video: number; audio: number }[] = [];
  for (const { url, wall, packet } of written) {
    let run = found.at(-1);
    if (run?.url !== url || run === undefined) found.push((run = { url, from: wall - T0, video: 0, audio: 0 }));
    if (packet.track.type === 'video') run.video++;
    else run.audio++;
  }
  return found;
}

async function playing(
  spec: ReturnType<typeof schedule>,
  files: Record<string, FakeFile>,
  at: number,
): Promise<VirtualChannel> {
  const channel = new VirtualChannel(spec, files, at);
  await channel.channel.start();
  return channel;
}

/** Fails where times of a track do not grow, or audio has a gap or overlap. */
function assertContinuous(
  t: { is(a: unknown, b: unknown, m?: string): void; true(a: boolean, m?: string): void },
  written: readonly Written[],
): void {
  const last = new Map<number, { dts: number; end: number }>();
  for (const { packet } of written) {
    const { track, dts, pts, duration } = packet;
    const before = last.get(track.id);
    if (before !== undefined) t.true(dts > before.dts, `${track.type} ${before.dts} -> ${dts}`);
    t.true(pts >= dts);
    last.set(track.id, { dts, end: pts + duration });
  }
}

test('items follow each other when they are planned, without a gap', async (t) => {
  const spec = schedule([
    { name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('b', { duration: 5000 })] },
  ]);
  const v = await playing(spec, { a: { length: 10_000 }, b: { length: 60_000, width: 640 } }, T0);
  v.clock.run(40_000);
  assertContinuous(t, v.written);
  const found = runs(v.written);
  t.deepEqual(
    found.slice(0, 4).map(({ url }) => url),
    ['a', 'b', 'a', 'b'],
  );
  for (const [index, planned] of [0, 10_000, 15_000, 25_000].entries())
    t.true(Math.abs((found[index]?.from ?? NaN) - planned) <= FRAME_MS, `${index} at ${found[index]?.from}`);
  t.deepEqual(
    found.slice(1, 3).map(({ video, audio }) => [video, audio]),
    [
      [25, 50],
      [50, 100],
    ],
  );
  const video = v.written.filter(({ packet }) => packet.track.type === 'video').map(({ packet }) => packet.dts);
  t.true(video.every((dts, index) => index === 0 || dts - (video[index - 1] ?? 0) === FRAME_MS * 90));
  t.deepEqual(v.warnings, []);
  v.channel.close();
  t.is(v.open, 0);
});

test('a channel that is joined late is at its position at once', async (t) => {
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('b')] }]);
  const v = await playing(spec, { a: { length: 10_000 }, b: { length: 9000 } }, T0 + 19_000 * 7 + 15_300);
  v.clock.run(1000);
  const [first] = v.written;
  t.is(first?.url, 'b');
  t.true(first?.packet.key);
  const burst = v.written.filter(({ wall }) => wall === first?.wall);
  // the last key frame is at 4 s of the second item, which is at 5.3 s when it is asked for and read in 0.1 s
  t.is(burst.filter(({ packet }) => packet.track.type === 'video').length, 8);
  const { position = 0 } = v.channel.report().item ?? {};
  t.is(position, 6300);
  v.clock.run(10_000);
  assertContinuous(t, v.written);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['b', 'a'],
  );
  t.true(Math.abs((runs(v.written)[1]?.from ?? NaN) - 19_000 * 8) <= FRAME_MS);
  v.channel.close();
});

test('a frame is scheduled at the same time on every node, whatever its clock, and whenever it began', async (t) => {
  const programs = [{ name: 'p', scheduled: T0, repeat: true, items: [item('a', { start: 1700 }), item('b')] }];
  const files = { a: { length: 10_000, gopMs: 1600 }, b: { length: 7000, gopMs: 1000 } };
  const keysFrom = async (at: number): Promise<string[]> => {
    const v = await playing(schedule(programs), files, at);
    const keys: string[] = [];
    v.onPacket = ({ packet, url }) => {
      if (packet.key && packet.track.type === 'video') keys.push(`${url} ${v.channel.scheduledAt(packet) - T0}`);
    };
    v.clock.run(T0 + 40_000 - at);
    v.channel.close();
    return keys;
  };
  const whole = await keysFrom(T0);
  t.true(whole.length > 30);
  for (const at of [T0 + 3333, T0 + 9300, T0 + 12_001.5]) {
    const joined = await keysFrom(at);
    t.true(joined.length > 20);
    t.deepEqual(joined, whole.slice(-joined.length));
  }
});

test('an item that begins in the middle of a file begins with the key frame before that', async (t) => {
  const items = [item('a', { duration: 3000 }), item('b', { start: 3100, duration: 4000 })];
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items }]);
  const v = await playing(spec, { a: { length: 10_000 }, b: { length: 20_000 } }, T0);
  v.clock.run(8900);
  assertContinuous(t, v.written);
  const video = v.written.filter(({ packet }) => packet.track.type === 'video');
  t.true(
    video.every(
      ({ packet }, index) => index === 0 || packet.dts - (video[index - 1]?.packet.dts ?? 0) === FRAME_MS * 90,
    ),
  );
  t.deepEqual(
    runs(v.written).map((run) => run.video),
    [15, 20, 10],
  );
  v.channel.close();
});

test('the fallback program plays while an item cannot, and the item comes back at its place', async (t) => {
  const files: Record<string, FakeFile> = { b: { length: 30_000 }, f: { length: 4000 } };
  const items = [item('missing', { duration: 10_000 }), item('b')];
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('f')]);
  const v = await playing(spec, files, T0);
  v.clock.run(5000);
  t.true(v.channel.report().fallback);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['f'],
  );
  files.missing = { length: 60_000, width: 640 };
  v.clock.run(4000);
  t.false(v.channel.report().fallback);
  t.is(v.channel.report().item?.url, 'missing');
  t.is(v.channel.report().item?.position, 9000);
  v.clock.run(5000);
  t.is(v.channel.report().item?.url, 'b');
  t.is(v.channel.report().item?.position, 4000);
  assertContinuous(t, v.written);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['f', 'missing', 'b'],
  );
  t.is(v.open, 1);
  v.channel.close();
});

test('an item that comes back behind its last key frame is not put on the air: the fallback program goes on', async (t) => {
  const files: Record<string, FakeFile> = { b: { length: 30_000 }, f: { length: 4000 } };
  const items = [item('missing', { duration: 15_000 }), item('b')];
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('f')]);
  const v = await playing(spec, files, T0);
  v.clock.run(12_500);
  // key frames at 0, 6 and 12 s
  files.missing = { length: 15_000, gopMs: 6000 };
  v.clock.run(2000);
  t.true(v.channel.report().fallback);
  v.clock.run(2000);
  t.is(v.channel.report().item?.url, 'b');
  assertContinuous(t, v.written);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['f', 'b'],
  );
  t.true(v.tracks.every((tracks) => tracks.length === 2));
  v.channel.close();
});

test('an item that comes back without video is not put on the air when the fallback program fails in the meantime', async (t) => {
  const files: Record<string, FakeFile> = { b: { length: 30_000 }, f: { length: 60_000, failsAt: 13_500 } };
  const items = [item('missing', { duration: 20_000 }), item('b')];
  const v = await playing(schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('f')]), files, T0);
  v.clock.run(12_500);
  files.missing = { length: 20_000, gopMs: 12_000 };
  v.clock.run(12_000);
  t.true(runs(v.written).length > 1);
  for (const { url, from, video } of runs(v.written)) t.true(video > 0, `${url} at ${from}`);
  assertContinuous(t, v.written);
  v.channel.close();
});

test('an item without fallback is passed over, and what fails in its middle too', async (t) => {
  const files: Record<string, FakeFile> = {
    a: { length: 4000 },
    broken: { length: 20_000, failsAt: 3000 },
    f: { length: 4000 },
  };
  const items = [item('a'), item('missing', { fallbackOnErr: false }), item('broken', { fallbackOnErr: false })];
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items }], [item('f')]);
  const v = await playing(spec, files, T0);
  v.clock.run(20_000);
  assertContinuous(t, v.written);
  t.deepEqual(
    runs(v.written)
      .map(({ url }) => url)
      .slice(0, 5),
    ['a', 'broken', 'a', 'broken', 'a'],
  );
  t.true(v.warnings.includes('the disk is broken'));
  v.channel.close();
});

test('a channel of which everything fails tries again and again, at a moderate rate', async (t) => {
  const files: Record<string, FakeFile> = {};
  const items = [
    item('x', { fallbackOnErr: false, duration: 5000 }),
    item('y', { fallbackOnErr: false, duration: 5000 }),
  ];
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items }], [item('z')]);
  const v = await playing(spec, files, T0);
  v.clock.run(60_000);
  t.is(v.written.length, 0);
  t.true(v.sources.length > 50 && v.sources.length < 400, `${v.sources.length} attempts`);
  files.x = files.y = files.z = { length: 20_000 };
  v.clock.run(10_000);
  t.true(v.written.length > 0);
  t.true(v.open <= 2);
  v.channel.close();
  t.is(v.open, 0);
});

test('a channel puts out nothing while nothing is scheduled, and readers begin anew after that', async (t) => {
  const programs = [
    { name: 'p', scheduled: T0, repeat: false, items: [item('a')] },
    { name: 'q', scheduled: T0 + 30_000, repeat: false, items: [item('a')] },
  ];
  const v = await playing(schedule(programs), { a: { length: 10_000 } }, T0);
  v.clock.run(29_000);
  const before = v.written.length;
  t.is(v.channel.report().item, undefined);
  t.is(v.tracks.length, 1);
  v.clock.run(5000);
  t.is(v.tracks.length, 2);
  t.not(v.tracks[0]?.[0], v.tracks[1]?.[0]);
  t.true(Math.abs((v.written[before]?.wall ?? 0) - T0 - 30_000) <= FRAME_MS);
  const leads = v.written.map(lead);
  t.true(Math.max(...leads) - Math.min(...leads) < 2 * FRAME_MS);
  v.channel.close();
});

test('a file that is shorter than it says leaves a gap when it is small, and fails when it is not', async (t) => {
  const files: Record<string, FakeFile> = {
    short: { length: 9700, told: 10_000 },
    cut: { length: 5000, told: 10_000 },
    f: { length: 2000, width: 640 },
  };
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item('short'), item('cut')] }], [item('f')]);
  const v = await playing(spec, files, T0);
  v.clock.run(32_000);
  const found = runs(v.written);
  t.deepEqual(found.map(({ url }) => url).slice(0, 2), ['short', 'cut']);
  t.true(Math.abs((found[1]?.from ?? 0) - 10_000) <= FRAME_MS);
  t.is(found[2]?.url, 'f');
  const again = found.find(({ url, from }) => url === 'short' && from > 1000);
  t.true(Math.abs((again?.from ?? 0) - 20_000) <= FRAME_MS);
  assertContinuous(t, v.written);
  v.channel.close();
});

test('a change of the schedule does not interrupt what goes on', async (t) => {
  const a = item('a');
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items: [a] }]);
  const files: Record<string, FakeFile> = { a: { length: 20_000 }, b: { length: 20_000 } };
  const v = await playing(spec, files, T0);
  v.clock.run(5000);
  await v.channel.change(
    schedule([...spec.programs, { name: 'q', scheduled: T0 + 8000, repeat: true, items: [item('b')] }]),
  );
  v.clock.run(5000);
  t.deepEqual(
    runs(v.written).map(({ url, video }) => [url, video]),
    [
      ['a', 40],
      ['b', 11],
    ],
  );
  // something else is scheduled for now: it is joined at its next key frame
  await v.channel.change(schedule([{ name: 'p', scheduled: T0, repeat: true, items: [a] }]));
  v.clock.run(5000);
  const video = v.written.filter(({ packet }) => packet.track.type === 'video');
  t.true(
    video.every(
      ({ packet }, index) => index === 0 || packet.dts - (video[index - 1]?.packet.dts ?? 0) <= FRAME_MS * 90,
    ),
  );
  t.deepEqual(v.channel.report().item, { url: 'a', start: 0, duration: -1, position: 15_000 });
  assertContinuous(t, v.written);
  v.channel.close();
});

test('an item is opened anew when a change of the schedule forwards its data, and follows its position', async (t) => {
  const news = 'stream://default/app/news';
  const program = (url: string, forwardData: boolean): ReturnType<typeof schedule> =>
    schedule([{ name: 'p', scheduled: T0, repeat: false, items: [item(url, { forwardData })] }]);
  const files: Record<string, FakeFile> = { [news]: { length: 60_000 }, a: { length: 60_000 } };
  for (const url of [news, 'a']) {
    const v = await playing(program(url, false), files, T0);
    v.clock.run(5000);
    await v.channel.change(program(url, true));
    v.clock.run(5000);
    t.deepEqual(
      v.sources.map((source) => source.item.forwardData),
      [false, true],
      url,
    );
    t.is(v.channel.report().item?.position, 10_000);
    assertContinuous(t, v.written);
    t.deepEqual(v.warnings, []);
    v.channel.close();
    t.is(v.open, 0);
  }
});

test('a change of what follows a failure reaches the item that is on the air', async (t) => {
  const program = (fallbackOnErr: boolean): ReturnType<typeof schedule> =>
    schedule(
      [{ name: 'p', scheduled: T0, repeat: false, items: [item('a', { fallbackOnErr }), item('b')] }],
      [item('f', { fallbackOnErr })],
    );
  const files: Record<string, FakeFile> = {
    a: { length: 60_000, failsAt: 10_000 },
    b: { length: 60_000 },
    f: { length: 60_000 },
  };
  for (const [before, after, follows] of [
    [true, false, 'b'],
    [false, true, 'f'],
  ] as const) {
    const v = await playing(program(before), files, T0);
    v.clock.run(5000);
    await v.channel.change(program(after));
    t.is(v.sources.length, 1);
    v.clock.run(8000);
    t.deepEqual(
      runs(v.written).map(({ url }) => url),
      ['a', follows],
    );
    v.channel.close();
  }
  const v = await playing(program(true), { f: { length: 60_000 } }, T0);
  v.clock.run(5000);
  await v.channel.change(program(false));
  v.clock.run(5000);
  t.is(v.sources.filter((source) => source.item.url === 'f').length, 1, 'the fallback program plays on');
  v.channel.close();
});

test('a file of unknown length is followed without a gap', async (t) => {
  for (const video of [true, false]) {
    const files: Record<string, FakeFile> = {
      a: { length: 10_000, isUntold: true, ...(video ? {} : { hasVideo: false }) },
      b: { length: 10_000 },
    };
    const spec = schedule([{ name: 'p', scheduled: T0, repeat: false, items: [item('a'), item('b')] }], [item('b')]);
    const v = await playing(spec, files, T0);
    v.clock.run(15_000);
    t.deepEqual(v.warnings, []);
    t.is(v.lengths.get('a'), 10_000);
    assertContinuous(t, v.written);
    const found = runs(v.written);
    t.deepEqual(
      found.map(({ url }) => url),
      ['a', 'b'],
    );
    t.true(Math.abs((found[1]?.from ?? 0) - 10_000) <= FRAME_MS);
    t.is(found[0]?.audio, 100);
    if (video) t.is(found[0]?.video, 50);
    v.channel.close();
  }
});

test('a length that becomes known while an item plays ends it there', async (t) => {
  const files: Record<string, FakeFile> = { a: { length: 60_000, isUntold: true }, b: { length: 60_000 } };
  for (const isFallback of [false, true]) {
    const items = [item('a'), item('b')];
    const spec = isFallback
      ? schedule([], items)
      : schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('b')]);
    const v = await playing(spec, files, T0);
    v.clock.run(5000);
    v.learn('a', 10_000);
    v.clock.run(10_000);
    const found = runs(v.written);
    t.deepEqual(
      found.map(({ url }) => url),
      ['a', 'b'],
    );
    t.true(Math.abs((found[1]?.from ?? 0) - 10_000) <= FRAME_MS, `${found[1]?.from}`);
    t.is(v.sources.filter(({ item: { url } }) => url === 'a').length, 1);
    t.deepEqual(v.warnings, []);
    v.channel.close();
  }
});

/** The longest time between two pictures, in the stream and as they were written, in milliseconds. */
function gaps(written: readonly Written[]): { media: number; wall: number } {
  const video = written.filter(({ packet }) => packet.track.type === 'video');
  const steps = video.slice(1).map(({ wall, packet }, index) => {
    const before = video[index] as Written;
    return { media: (packet.dts - before.packet.dts) / 90, wall: wall - before.wall };
  });
  return {
    media: Math.max(...steps.map(({ media }) => media)),
    wall: Math.max(...steps.map(({ wall }) => wall)),
  };
}

test('the fallback program is ready where nothing follows an item, or what follows cannot be played', async (t) => {
  const files: Record<string, FakeFile> = { a: { length: 10_000 }, f: { length: 60_000, opensInMs: 900 } };
  for (const after of [[], [item('missing', { duration: 10_000 })]]) {
    const items = [item('a'), ...after];
    const v = await playing(schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('f')]), files, T0);
    v.clock.run(15_000);
    t.deepEqual(
      runs(v.written).map(({ url }) => url),
      ['a', 'f'],
    );
    t.true(gaps(v.written).wall <= FRAME_MS + 5, `${gaps(v.written).wall}`);
    t.is(v.sources.filter(({ item: { url } }) => url === 'f').length, 1);
    assertContinuous(t, v.written);
    v.channel.close();
    t.is(v.open, 0);
  }
});

test('an item that fails while it plays is followed by the fallback program without a gap in the stream', async (t) => {
  const cases: [FakeFile, number][] = [
    // what has failed is known two seconds before it is missed
    [{ length: 60_000, failsAt: 10_000 }, FRAME_MS + 5],
    [{ length: 10_000, told: 60_000 }, FRAME_MS + 5],
    // what stands still is waited for
    [{ length: 60_000, stallsAt: 10_000 }, FRAME_MS + 500 + 50],
  ];
  for (const [file, most] of cases) {
    const files: Record<string, FakeFile> = { a: file, f: { length: 60_000, opensInMs: 400 } };
    const spec = schedule([{ name: 'p', scheduled: T0, repeat: false, items: [item('a')] }], [item('f')]);
    const v = await playing(spec, files, T0);
    v.clock.run(10_900);
    t.deepEqual(
      runs(v.written).map(({ url }) => url),
      ['a', 'f'],
    );
    t.true(gaps(v.written).media <= FRAME_MS + 5, `${gaps(v.written).media} ms of media`);
    t.true(gaps(v.written).wall <= most, `${gaps(v.written).wall} ms`);
    t.is(v.sources.filter(({ item: { url } }) => url === 'f').length, 1);
    assertContinuous(t, v.written);
    v.channel.close();
    t.is(v.open, 0);
  }
});

test('the fallback program plays while items take longer to open than they last', async (t) => {
  const files: Record<string, FakeFile> = {
    a: { length: 60_000, opensInMs: 1500 },
    f: { length: 60_000, opensInMs: 1500 },
  };
  const items = [item('missing', { duration: 1000 }), item('a', { duration: 1000 })];
  const v = await playing(schedule([{ name: 'p', scheduled: T0, repeat: true, items }], [item('f')]), files, T0);
  v.clock.run(30_000);
  t.true(v.written.length > 200, `${v.written.length} packets`);
  t.true((v.written[0]?.wall ?? Infinity) - T0 < 4000);
  assertContinuous(t, v.written);
  v.channel.close();
  t.is(v.open, 0);
});

test('a fallback program that was made ready in vain is closed again, and is not opened for each hitch', async (t) => {
  const files: Record<string, FakeFile> = { a: { length: 120_000, stallsAt: 10_000 }, f: { length: 2000 } };
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: false, items: [item('a')] }], [item('f')]);
  const v = await playing(spec, files, T0);
  const opened = (): number => v.sources.filter(({ item: { url } }) => url === 'f').length;
  for (const stall of [10_000, 12_500, 15_000]) {
    v.clock.run(T0 + stall + 200 - v.clock.wall());
    t.is(opened(), 1);
    t.is(v.open, 2);
    Object.assign(files.a as FakeFile, { stallsAt: stall + 2500 });
    v.sources[0]?.taken();
  }
  Object.assign(files.a as FakeFile, { stallsAt: undefined });
  v.sources[0]?.taken();
  v.clock.run(15_000);
  t.is(v.open, 1);
  t.is(opened(), 1);
  t.is(gaps(v.written).media, FRAME_MS);
  t.deepEqual(v.warnings, []);
  v.channel.close();
});

test('an item that is open already ends where a change of the schedule says', async (t) => {
  const program = (duration: number) => ({
    name: 'p',
    scheduled: T0,
    repeat: true,
    items: [item('a'), item('b', { duration })],
  });
  const files: Record<string, FakeFile> = { a: { length: 10_000 }, b: { length: 60_000 } };
  const v = await playing(schedule([program(10_000)]), files, T0);
  v.clock.run(9000);
  t.is(v.open, 2);
  await v.channel.change(schedule([program(4000)]));
  v.clock.run(16_000);
  t.deepEqual(
    runs(v.written).map(({ url, video }) => [url, video]),
    [
      ['a', 50],
      ['b', 20],
      ['a', 50],
      ['b', 6],
    ],
  );
  v.channel.close();
});

test('a fallback program that is replaced while it plays makes way, one that stays goes on', async (t) => {
  const files: Record<string, FakeFile> = { f: { length: 60_000 }, g: { length: 60_000 } };
  const v = await playing(schedule([], [item('f')]), files, T0);
  v.clock.run(5000);
  await v.channel.change(schedule([], [item('f'), item('g')]));
  v.clock.run(5000);
  t.deepEqual(v.channel.report().item?.url, 'f');
  t.is(v.sources.length, 1);
  await v.channel.change(schedule([], [item('g')]));
  v.clock.run(5000);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['f', 'g'],
  );
  assertContinuous(t, v.written);
  await v.channel.change(schedule([]));
  const before = v.written.length;
  v.clock.run(5000);
  t.is(v.written.length, before);
  t.is(v.open, 0);
  v.channel.close();
});

test('a small step of the clock is followed slowly, a large one at once', async (t) => {
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('b')] }]);
  const v = await playing(spec, { a: { length: 60_000 }, b: { length: 60_000 } }, T0);
  v.clock.run(10_000);
  v.clock.set(400);
  v.clock.run(52_000);
  t.is(v.channel.report().item?.url, 'b');
  const change = runs(v.written)[1]?.from ?? 0;
  t.true(Math.abs(change - 60_000) <= 2 * FRAME_MS, `changed at ${change}`);
  v.clock.set(60_000);
  v.clock.run(5000);
  t.is(v.channel.report().item?.url, 'a');
  t.true(Math.abs((v.channel.report().item?.position ?? 0) - 7400) < 300);
  assertContinuous(t, v.written);
  v.channel.close();
});

test('a clock that is set forward or back moves the channel to what is scheduled then', async (t) => {
  const programs = [
    { name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('b')] },
    { name: 'q', scheduled: T0 + 86_400_000, repeat: true, items: [item('b'), item('a')] },
  ];
  const v = await playing(
    schedule(programs, [item('f')]),
    { a: { length: 60_000 }, b: { length: 60_000 }, f: { length: 60_000 } },
    T0,
  );
  const at = (): unknown => {
    const { program, item: on, fallback } = v.channel.report();
    return [fallback ? 'fallback' : program?.name, on?.url, Math.round((on?.position ?? 0) / 1000)];
  };
  v.clock.run(10_000);
  t.deepEqual(at(), ['p', 'a', 10]);
  v.clock.set(3_600_000);
  v.clock.run(10_000);
  t.deepEqual(at(), ['p', 'a', 20]);
  v.clock.set(70_000);
  v.clock.run(5000);
  t.deepEqual(at(), ['p', 'b', 35]);
  v.clock.set(86_400_000 - 3_600_000);
  v.clock.run(5000);
  t.deepEqual(at(), ['q', 'a', 40]);
  v.clock.set(-86_400_000);
  v.clock.run(5000);
  t.deepEqual(at(), ['p', 'b', 45]);
  v.clock.set(-86_400_000);
  v.clock.run(5000);
  t.deepEqual(at(), ['fallback', 'f', 5]);
  v.clock.set(86_400_000);
  v.clock.run(5000);
  t.deepEqual(at(), ['p', 'b', 55]);
  assertContinuous(t, v.written);
  t.true(gaps(v.written).media <= 3 * FRAME_MS, `${gaps(v.written).media}`);
  v.channel.close();
  t.is(v.open, 0);
});

test('programs of local times play across the change to and from daylight saving', async (t) => {
  const cases = [
    // 29 March 2026: 02:00 is 03:00; 25 October 2026: 03:00 is 02:00
    [['2026-03-29T01:59:30+01:00', '2026-03-29T03:00:00+02:00', '2026-03-29T03:00:30+02:00'], 30_000],
    [['2026-10-25T02:59:30+02:00', '2026-10-25T02:00:00+01:00', '2026-10-25T02:00:30+01:00'], 30_000],
    [['2026-10-25T02:30:00+02:00', '2026-10-25T02:30:00+01:00', '2026-10-25T03:30:00+01:00'], 3_600_000],
  ] as const;
  for (const [times, apart] of cases) {
    const begins = Date.parse(times[0]);
    const checked = checkSchedule(
      {
        stream: { name: 'tv' },
        programs: times.map((scheduled, index) => ({
          ...{ name: `${index}`, scheduled, repeat: true },
          items: [{ url: `file://${index}` }],
        })),
      },
      begins,
    );
    if (!checked.ok) return t.fail();
    const files = Object.fromEntries([0, 1, 2].map((index) => [`file://${index}`, { length: 20_000, frameMs: 1000 }]));
    const v = await playing(checked.value.spec, files, begins);
    const changes: [string | undefined, number][] = [];
    v.onPacket = ({ wall, url }) => {
      if (changes.at(-1)?.[0] !== url) changes.push([url, Math.round((wall - begins) / 1000) * 1000]);
    };
    v.clock.run(2 * apart + 10_000);
    t.deepEqual(changes, [
      ['file://0', 0],
      ['file://1', apart],
      ['file://2', 2 * apart],
    ]);
    t.deepEqual(v.warnings, []);
    v.channel.close();
  }
});

test('tracks come and go with the items', async (t) => {
  const spec = schedule([
    { name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('silent'), item('sound')] },
  ]);
  const files: Record<string, FakeFile> = {
    a: { length: 4000 },
    silent: { length: 4000, samples: 0 },
    sound: { length: 4000, hasVideo: false },
  };
  const v = await playing(spec, files, T0);
  v.clock.run(15_000);
  t.deepEqual(
    v.tracks.map((tracks) => tracks.map(({ id }) => id)),
    [[0, 100], [0], [100], [0, 100]],
  );
  assertContinuous(t, v.written);
  v.channel.close();
});

test('a day of forty items is on time to the frame', async (t) => {
  const random = seeded(17);
  const files: Record<string, FakeFile> = {};
  const items = Array.from({ length: 40 }, (_, index) => {
    const url = `f${index}`;
    const frameMs = [40, 100, 200, 333][index % 4] ?? 200;
    // pictures and sound of files end at times of their own
    files[url] = {
      length: 20_000 + Math.floor(random() * 400_000),
      frameMs,
      gopMs: frameMs * 10,
      width: 320 + 16 * (index % 3),
    };
    return item(url, index % 5 === 0 ? { duration: 15_000 + index } : {});
  });
  const spec = schedule([{ name: 'day', scheduled: T0 - 123_456_789, repeat: true, items }]);
  const v = new VirtualChannel(spec, files, T0);
  const last = new Map<number, { dts: number; end: number }>();
  const ends: Record<string, number>[] = [];
  let url: string | undefined;
  let changes = 0;
  let worst = 0;
  let faults = 0;
  v.onPacket = (written) => {
    const { packet } = written;
    const before = last.get(packet.track.id);
    if (before !== undefined && packet.dts <= before.dts) faults++;
    const endMs = toSeconds(packet.pts + packet.duration, packet.track.timebase) * 1000;
    if (written.url !== url) {
      url = written.url;
      changes++;
      ends.push({});
      if (changes > 1) worst = Math.max(worst, Math.abs(v.channel.report().item?.position ?? Infinity));
    }
    Object.assign(ends.at(-1) ?? {}, { [packet.track.type]: endMs });
    last.set(packet.track.id, { dts: packet.dts, end: endMs });
  };
  await v.channel.start();
  v.clock.run(86_400_000);
  t.is(faults, 0);
  t.true(changes > 300, `${changes} changes`);
  t.true(worst <= 40, `a change was ${worst} ms late`);
  // one that was running in the end is left out
  for (const { video = 0, audio = 0 } of ends.slice(0, -1)) t.true(Math.abs(video - audio) <= 434, `${video} ${audio}`);
  t.deepEqual(v.warnings, []);
  v.channel.close();
  t.is(v.open, 0);
});

test('a channel plays although the lengths of its files cannot be learned', async (t) => {
  const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item('a')] }]);
  const v = new VirtualChannel(spec, { a: { length: 10_000 } }, T0);
  v.measure = () => Promise.reject(new Error('EIO: i/o error'));
  await v.channel.start();
  v.clock.run(5000);
  t.is(runs(v.written)[0]?.url, 'a');
  await v.channel.change(schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item('a'), item('a')] }]));
  t.true(v.warnings.length > 0);
  t.true(v.warnings.every((line) => line.includes('could not be learned')));
  v.channel.close();
});

test('a channel does not plan anew for the length of a file that it does not play', async (t) => {
  const programs = [{ name: 'p', scheduled: T0, repeat: true, items: [item('a')] }];
  const v = await playing(schedule(programs), { a: { length: 10_000 } }, T0);
  v.clock.run(1000);
  const asked: string[] = [];
  v.onLengthOf = (url) => void asked.push(url);
  v.learn('other', 5000);
  v.clock.run(1);
  t.deepEqual(asked, []);
  v.learn('a', 9000);
  v.clock.run(1);
  t.true(asked.includes('a'));
  v.channel.close();
});

test('an item that a change of the schedule has removed plays on when another change brings it back', async (t) => {
  const program = (url: string) => schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item(url)] }]);
  const files: Record<string, FakeFile> = { a: { length: 60_000 }, b: { length: 60_000, opensInMs: 2000 } };
  const v = await playing(program('a'), files, T0);
  v.clock.run(5000);
  await v.channel.change(program('b'));
  v.clock.run(1000);
  t.is(v.channel.report().item?.url, 'a', 'nothing else can play yet');
  t.is(v.open, 2);
  await v.channel.change(program('a'));
  v.clock.run(5000);
  t.deepEqual(
    runs(v.written).map(({ url, video }) => [url, video]),
    [['a', 56]],
  );
  t.is(v.open, 1);
  t.is(v.sources.length, 2, 'it was not opened again');
  t.is(v.channel.report().item?.position, 11_000);
  assertContinuous(t, v.written);
  v.channel.close();
});

test('an item that is no longer scheduled and fails leaves the stream silent until another one can play', async (t) => {
  const program = (url: string) => schedule([{ name: 'p', scheduled: T0, repeat: true, items: [item(url)] }]);
  const files: Record<string, FakeFile> = {
    a: { length: 60_000, failsAt: 6000 },
    b: { length: 60_000, opensInMs: 3000 },
  };
  const v = await playing(program('a'), files, T0);
  v.clock.run(5000);
  await v.channel.change(program('b'));
  v.clock.run(2000);
  t.is(v.channel.report().item, undefined);
  t.deepEqual(v.warnings, ['the disk is broken']);
  v.clock.run(3000);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['a', 'b'],
  );
  assertContinuous(t, v.written);
  v.channel.close();
  t.is(v.open, 0);
});

for (const [what, isFallback] of [
  ['an item of the programs', false],
  ['the fallback program', true],
] as const) {
  test(`${what} that a change of the schedule has removed does not come back when it ends too early`, async (t) => {
    const once = { fallbackOnErr: false };
    const program = (...urls: string[]) => [
      { name: 'p', scheduled: T0, repeat: true, items: urls.map((url) => item(url, once)) },
    ];
    const files: Record<string, FakeFile> = {
      old: { length: 6000, told: 60_000 },
      fallback: { length: 6000 },
      present: { length: 60_000, opensInMs: 4000 },
    };
    const spec = isFallback ? schedule(program('missing'), [item('fallback')]) : schedule(program('old', 'old'));
    const v = await playing(spec, files, T0);
    v.clock.run(5000);
    const before = v.channel.report();
    t.is(before.fallback, isFallback);
    await v.channel.change(schedule(program('present')));
    const seen = new Set<string>();
    for (let at = 0; at < 10_000; at += 100) {
      v.clock.run(100);
      const { item: playing, fallback } = v.channel.report();
      seen.add(`${playing?.url} ${fallback}`);
    }
    t.deepEqual([...seen], [`${before.item?.url} ${isFallback}`, 'undefined false', 'present false']);
    assertContinuous(t, v.written);
    v.channel.close();
    t.is(v.open, 0);
  });
}

test('the fallback program is never one of the programs, whichever of its items fail', async (t) => {
  const files: Record<string, FakeFile> = {
    f: { length: 5000, failsAt: 4000 },
    missing: { length: 5000, failure: 'it is missing' },
  };
  const v = await playing(schedule([], [item('f'), item('missing')]), files, T0);
  for (let at = 0; at < 30_000; at += 100) {
    if (at === 4500) files.f = { length: 5000 };
    v.clock.run(100);
    const report = v.channel.report();
    t.is(report.fallback, report.item !== undefined, `${at}`);
  }
  t.is(v.channel.report().item?.url, 'f');
  v.channel.close();
  t.is(v.open, 0);
});

test('an item of the fallback program that was made ready is followed as a change of the schedule says', async (t) => {
  const files: Record<string, FakeFile> = {
    ...{ f: { length: 5000 }, old: { length: 60_000 }, g: { length: 60_000 } },
    broken: { length: 5000, failure: 'it is missing', opensInMs: 2000 },
  };
  const v = await playing(
    schedule(
      [],
      ['f', 'broken', 'old'].map((url) => item(url)),
    ),
    files,
    T0,
  );
  v.clock.run(3000);
  t.is(v.open, 2);
  await v.channel.change(
    schedule(
      [],
      ['f', 'broken', 'g'].map((url) => item(url)),
    ),
  );
  v.clock.run(10_000);
  t.deepEqual(
    runs(v.written).map(({ url }) => url),
    ['f', 'g'],
  );
  assertContinuous(t, v.written);
  v.channel.close();
});

test('a fallback program that was made ready is closed when the next item begins', async (t) => {
  const files: Record<string, FakeFile> = {
    a: { length: 10_000, stallsAt: 9700 },
    b: { length: 60_000 },
    f: { length: 60_000 },
  };
  const items = [item('a'), item('b')];
  const v = await playing(schedule([{ name: 'p', scheduled: T0, repeat: false, items }], [item('f')]), files, T0);
  v.clock.run(9900);
  t.is(v.open, 3);
  v.clock.run(600);
  t.is(v.channel.report().item?.url, 'b');
  t.is(v.open, 1);
  t.deepEqual(v.warnings, []);
  v.channel.close();
});

test('the fallback program plays when items begin and fail at once, one after the other', async (t) => {
  const files: Record<string, FakeFile> = {
    x: { length: 100, told: 10_000 },
    y: { length: 100, told: 10_000 },
    f: { length: 60_000 },
  };
  const items = [item('x', { fallbackOnErr: false }), item('y', { fallbackOnErr: false })];
  const v = await playing(schedule([{ name: 'p', scheduled: T0, repeat: true, items }], [item('f')]), files, T0);
  v.clock.run(5000);
  t.true(runs(v.written).some(({ url }) => url === 'f'));
  v.channel.close();
  t.is(v.open, 0);
});

test('a channel that is closed by a reader of its packets opens nothing more', async (t) => {
  const items = [item('a'), item('b')];
  for (const at of [5000, 9900, 10_000]) {
    const spec = schedule([{ name: 'p', scheduled: T0, repeat: true, items }], [item('f')]);
    const v = new VirtualChannel(spec, { a: { length: 10_000 }, b: { length: 10_000 }, f: { length: 4000 } }, T0);
    let packets = 0;
    v.onPacket = ({ wall }) => {
      packets++;
      if (wall >= T0 + at) v.channel.close();
    };
    await v.channel.start();
    v.clock.run(at + 1000);
    t.is(v.open, 0, `${at}`);
    const before = [packets, v.sources.length];
    await v.channel.change(schedule([{ name: 'q', scheduled: T0, repeat: true, items }]));
    v.learn('a', 5000);
    v.channel.close();
    v.clock.run(20_000);
    t.deepEqual([packets, v.sources.length], before);
    t.is(v.channel.report().item, undefined);
  }
});
