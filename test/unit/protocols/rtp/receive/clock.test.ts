import test, { type ExecutionContext } from 'ava';
import { RtpClock, type RtpTrackClock } from '../../../../../src/protocols/rtp/receive/clock.ts';

const TICKS = 90_000;

/** Takes a frame of a track every 20 ms, from one second to another, and answers the times, in seconds. */
function run(
  track: RtpTrackClock,
  clockRate: number,
  {
    from,
    to,
    base,
    latency = 0,
  }: {
    readonly from: number;
    readonly to: number;
    readonly base: number;
    readonly latency?: number;
  },
): number[] {
  const times: number[] = [];
  for (let i = Math.round(from * 50); i < Math.round(to * 50); i++) {
    const stamp = Math.round(base + (i / 50) * clockRate) % 2 ** 32;
    times.push(track.time(stamp, i * 20 + latency) / TICKS);
  }
  return times;
}

function report(seconds: number, rtpTime: number) {
  return { ssrc: 1, ntpMs: seconds * 1000, compactNtp: 0, rtpTime: rtpTime % 2 ** 32 };
}

function near(t: ExecutionContext, actual: number | undefined, expected: number, within = 0.002): void {
  t.true(Math.abs((actual ?? NaN) - expected) <= within, `${actual} is not ${expected}`);
}

test('tracks without reports are to each other as they come, through the wraps of both', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  const audio = clock.track(48_000, true);
  const pictures = run(video, 90_000, { from: 0, to: 10, base: 2 ** 32 - 5000 });
  near(t, pictures[0], 0);
  near(t, pictures.at(-1), 9.98);
  const sound = run(audio, 48_000, { from: 10, to: 12, base: 2 ** 32 - 1000 - 480_000 });
  near(t, sound[0], 10);
  near(t, sound.at(-1), 11.98);
});

test('reports in front of the first packets put tracks where they belong, whatever their latency', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  const audio = clock.track(48_000, true);
  video.report(report(1000, 70_000));
  audio.report(report(1000, 900));
  t.deepEqual([video.isReported, audio.isReported], [true, true]);
  // the picture of the same instant comes 300 ms after the sound
  const sound = run(audio, 48_000, { from: 0, to: 1, base: 900 });
  const pictures = run(video, 90_000, { from: 0, to: 1, base: 70_000, latency: 300 });
  pictures.forEach((time, i) => near(t, time, sound[i] as number));
});

test('a report that comes late moves the pictures, slowly, and never back', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  const audio = clock.track(48_000, true);
  const sound = run(audio, 48_000, { from: 0, to: 1, base: 0 });
  const before = run(video, 90_000, { from: 0, to: 1, base: 0, latency: 300 });
  const apart = (before.at(-1) as number) - (sound.at(-1) as number);
  audio.report(report(500, 48_000));
  video.report(report(500, 90_000));
  const moved = run(video, 90_000, { from: 1, to: 20, base: 0, latency: 300 });
  const steady = run(audio, 48_000, { from: 1, to: 20, base: 0 });
  near(t, (moved[0] as number) - (steady[0] as number), apart, 0.01);
  near(t, (moved.at(-1) as number) - (steady.at(-1) as number), 0, 0.006);
  for (let i = 1; i < moved.length; i++) {
    const step = (moved[i] as number) - (moved[i - 1] as number);
    t.true(step > 0.018 && step < 0.022, `${step}`);
    near(t, (steady[i] as number) - (steady[i - 1] as number), 0.02, 1e-6);
  }
});

test('reports that cannot be are not believed', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  run(video, 90_000, { from: 0, to: 1, base: 0 });
  t.false(video.report({ ...report(0, 0), ntpMs: undefined }));
  t.false(video.report(report(100, 60 * 90_000)));
  t.true(video.report(report(100, 90_000)));
});

test('senders whose clocks are apart are put together by arrival', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  const audio = clock.track(48_000, true);
  audio.report(report(1000, 0));
  video.report(report(9000, 0));
  near(t, run(audio, 48_000, { from: 0, to: 0.1, base: 0 })[0], 0);
  near(t, run(video, 90_000, { from: 0, to: 0.1, base: 0 })[0], 0, 0.1);
});

test('a report that jumps moves nothing before the next agrees, and the clocks of both are known', (t) => {
  const clock = new RtpClock(true);
  const video = clock.track(90_000, false);
  const audio = clock.track(48_000, true);
  audio.report(report(100, 0));
  video.report(report(100, 0));
  const both = (from: number, to: number) => {
    const sound = run(audio, 48_000, { from, to, base: 0 });
    const pictures = run(video, 90_000, { from, to, base: 0 });
    return (pictures.at(-1) as number) - (sound.at(-1) as number);
  };
  near(t, both(0, 1), 0);
  // the sender's clock is set by a second; its reports tell so one after the other
  audio.report(report(102, 48_000));
  near(t, both(1, 2), 0);
  video.report(report(103, 180_000));
  near(t, both(2, 3), 0);
  audio.report(report(104, 144_000));
  near(t, both(3, 4), 0);
  video.report(report(105, 360_000));
  near(t, both(4, 5), 0);
  // and now one track alone really moves
  video.report(report(106.2, 450_000));
  near(t, both(5, 6), 0);
  video.report(report(107.2, 540_000));
  near(t, both(6, 16), 0.2, 0.01);
});

test('a count that jumps goes on at the time of its packets', (t) => {
  const clock = new RtpClock(false);
  const video = clock.track(90_000, false);
  run(video, 90_000, { from: 0, to: 2, base: 0 });
  near(t, run(video, 90_000, { from: 2, to: 3, base: 3_000_000_000 })[0], 2, 0.03);
  near(t, run(video, 90_000, { from: 3, to: 4, base: 5000 })[0], 3, 0.03);
  video.restart();
  near(t, run(video, 90_000, { from: 4, to: 5, base: 77 })[0], 4, 0.03);
});

test('a count that steps back a little goes on at the time of its packets, and tracks stay together', (t) => {
  for (const back of [0.5, 1.5]) {
    const clock = new RtpClock(true);
    const video = clock.track(90_000, false);
    const audio = clock.track(48_000, true);
    for (let second = 0; second < 6; second++) {
      const base = second < 3 ? 10 : 10 - back;
      const span = { from: second, to: second + 1 };
      const pictures = run(video, 90_000, { ...span, base: base * 90_000 });
      const sound = run(audio, 48_000, { ...span, base: base * 48_000 });
      pictures.forEach((time, i) => near(t, time, second + i / 50, 0.05));
      sound.forEach((time, i) => near(t, time, second + i / 50, 0.05));
    }
  }
});

for (const off of [-40_000, -3, -0.5, 2, 8, 9.9, 40_000]) {
  test(`a timestamp that is ${off} s off is not believed, and what comes after it goes on`, (t) => {
    for (const strays of ['video', 'audio']) {
      const clock = new RtpClock(true);
      const video = clock.track(90_000, false);
      const audio = clock.track(48_000, true);
      for (let i = 0; i < 1000; i++) {
        const at = i / 25;
        if (i % 125 === 10) {
          video.report(report(500 + at, at * 90_000));
          audio.report(report(500 + at, at * 48_000));
        }
        for (const [track, rate, name] of [
          [video, 90_000, 'video'],
          [audio, 48_000, 'audio'],
        ] as const) {
          const stray = name === strays && i % 75 === 74 ? off : 0;
          const stamp = (Math.round((at + stray) * rate) + 2 ** 32) % 2 ** 32;
          near(t, track.time(stamp, i * 40) / TICKS, at, 0.045);
        }
      }
    }
  });
}

test('several frames of one packet whose timestamp is off are not believed either', (t) => {
  const audio = new RtpClock(false).track(48_000, true);
  for (let packet = 0; packet < 100; packet++) {
    for (let frame = 0; frame < 4; frame++) {
      const at = packet * 4 + frame;
      const time = audio.time((packet === 50 ? 400_000 : 0) + at * 1024, packet * 85) / TICKS;
      near(t, time, (at * 1024) / 48_000);
    }
  }
});

test('few frames, many at once, and a gap that the sender did count are no strays', (t) => {
  const slow = new RtpClock(false).track(90_000, false);
  for (let i = 0; i < 20; i++) near(t, slow.time(i * 4 * 90_000, i * 4000) / TICKS, i * 4);
  const cached = new RtpClock(false).track(90_000, false);
  for (let i = 0; i < 60; i++) near(t, cached.time(i * 3 * 90_000, 1000 + i) / TICKS, i * 3);
  const lossy = new RtpClock(false).track(90_000, false);
  run(lossy, 90_000, { from: 0, to: 1, base: 0 });
  near(t, run(lossy, 90_000, { from: 6, to: 8, base: 0 })[0], 6);
  // what was lost of a burst behind a stall
  const burst = new RtpClock(false).track(90_000, false);
  run(burst, 90_000, { from: 0, to: 1, base: 0 });
  const late = Array.from({ length: 50 }, (_, i) => burst.time((5 + i / 50) * 90_000, 6000 + i) / TICKS);
  late.forEach((time, i) => near(t, time, 5 + i / 50));
});

for (const ahead of [3, 8]) {
  for (const strays of ['video', 'audio', 'both']) {
    test(`timestamps of ${strays} that are ${ahead} s ahead for a while leave no gap, and the tracks together`, (t) => {
      for (const length of [0.04, 0.1, 1, 30]) {
        const clock = new RtpClock(true);
        const [video, audio] = [clock.track(90_000, false), clock.track(48_000, true)];
        for (let i = 0; i < 1000; i++) {
          const at = i / 50;
          const off = at >= 10 && at < 10 + length ? ahead : 0;
          const stampOf = (track: string) => at + (strays === track || strays === 'both' ? off : 0);
          if (i % 2 === 0) near(t, video.time(Math.round(stampOf('video') * 90_000), i * 20) / TICKS, at, 0.045);
          near(t, audio.time(Math.round(stampOf('audio') * 48_000), i * 20) / TICKS, at, 0.045);
        }
      }
    });
  }
}

test('a clock that is set ahead while audio is on its way for longer than pictures parts no tracks', (t) => {
  const clock = new RtpClock(true);
  const [video, audio] = [clock.track(90_000, false), clock.track(48_000, true)];
  const stampOf = (at: number) => at + (at < 10 ? 0 : 5);
  for (let i = 0; i < 1000; i++) {
    const at = i / 50;
    near(t, video.time(Math.round(stampOf(at) * 90_000), i * 20) / TICKS, at, 0.025);
    if (i >= 40) near(t, audio.time(Math.round(stampOf(at - 0.8) * 48_000), i * 20) / TICKS, at, 0.025);
  }
});

test('a timestamp that is doubted behind a pause does not repeat the pause', (t) => {
  const video = new RtpClock(false).track(90_000, false);
  run(video, 90_000, { from: 0, to: 2, base: 0 });
  near(t, video.time(8 * 90_000, 8000) / TICKS, 8);
  near(t, video.time(2 ** 31, 8020) / TICKS, 8.02);
  near(t, video.time(8.04 * 90_000, 8040) / TICKS, 8.04);
});

test('a slide show that comes at once behind what came in time keeps its times, but for the first slide', (t) => {
  for (const seconds of [3, 8]) {
    const video = new RtpClock(false).track(90_000, false);
    run(video, 90_000, { from: 0, to: 2, base: 0 });
    const times = Array.from({ length: 60 }, (_, i) => video.time((2 + i * seconds) * 90_000, 2000 + i) / TICKS);
    times.forEach((time, i) => i === 1 || near(t, time, 2 + i * seconds));
  }
});

test('pauses in what comes faster than it is played keep their length', (t) => {
  const video = new RtpClock(false).track(90_000, false);
  for (let i = 0; i < 400; i++) {
    const at = i / 100 + Math.floor(i / 40) * 5;
    near(t, video.time(at * 90_000, 1000 + i / 2) / TICKS, at);
  }
});

test('timestamps of which none goes on from another are taken as they come', (t) => {
  let seed = 7;
  const random = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0);
  const video = new RtpClock(false).track(90_000, false);
  let time = 0;
  for (let i = 0; i < 1000; i++) time = video.time(random(), i * 40) / TICKS;
  near(t, time, 40, 1);
});

test('pictures that are sent before they are shown are no steps back, however deep', (t) => {
  const video = new RtpClock(true).track(90_000, false);
  // five a second, in groups of eight: the last one first, then those that it is shown after
  const order = [8, 4, 2, 1, 3, 6, 5, 7];
  for (let group = 0; group < 10; group++) {
    for (const [place, index] of order.entries()) {
      const shown = group * 8 + index;
      near(t, video.time(shown * 18_000, (group * 8 + place) * 200) / TICKS, (shown - 8) / 5);
    }
  }
});

test('a stall, and a burst after it, are no jumps', (t) => {
  const clock = new RtpClock(false);
  const video = clock.track(90_000, false);
  run(video, 90_000, { from: 0, to: 1, base: 0 });
  const stalled = Array.from({ length: 1000 }, (_, i) => video.time(90_000 + i * 1800, 30_000) / TICKS);
  near(t, stalled[0], 1);
  near(t, stalled.at(-1), 20.98);
});

for (const [pause, isReported] of [
  [2, true],
  [8, true],
  [8, false],
] as const) {
  test(`sound whose sender does not count for ${pause} s${isReported ? '' : ', and reports nothing,'} goes on where the picture is`, (t) => {
    const clock = new RtpClock(true);
    const video = clock.track(90_000, false);
    const audio = clock.track(48_000, true);
    const reported = (sound: number): void => {
      if (!isReported) return;
      video.report(report(500 + sound + pause, (sound + pause) * 90_000));
      audio.report(report(500 + sound + pause, sound * 48_000));
    };
    run(audio, 48_000, { from: 0, to: 2, base: 0 });
    run(video, 90_000, { from: 0, to: 2, base: 0 });
    if (isReported) {
      video.report(report(501, 90_000));
      audio.report(report(501, 48_000));
    }
    run(video, 90_000, { from: 2, to: 2 + pause, base: 0 });
    run(audio, 48_000, { from: 2 + pause, to: 2.1 + pause, base: -pause * 48_000 });
    reported(2.1);
    const sound = run(audio, 48_000, { from: 2.1 + pause, to: 4 + pause, base: -pause * 48_000 });
    const pictures = run(video, 90_000, { from: 2 + pause, to: 4 + pause, base: 0 });
    near(t, sound[10], 2.3 + pause, 0.025);
    near(t, sound.at(-1), 3.98 + pause, 0.025);
    near(t, pictures.at(-1), 3.98 + pause, 0.025);
  });
}

test('packets that are late together, and reports of no pause, move nothing', (t) => {
  const clock = new RtpClock(true);
  const audio = clock.track(48_000, true);
  run(audio, 48_000, { from: 0, to: 2, base: 0 });
  audio.report(report(501, 48_000));
  const late = [2, 2.02, 2.04].map((seconds) => audio.time(seconds * 48_000, 5000) / TICKS);
  audio.report(report(502, 2 * 48_000));
  late.forEach((time, i) => near(t, time, 2 + i * 0.02));
  near(t, run(audio, 48_000, { from: 5, to: 6, base: 0 })[0], 5);
});

test('a sender that stood still, and reported when it sent what it had missed, did count', (t) => {
  for (const missed of [0.4, 1, 3]) {
    const clock = new RtpClock(true);
    const audio = clock.track(48_000, true);
    const resumed = 2 + missed;
    const late = (from: number, to: number): number[] =>
      run(audio, 48_000, { from, to, base: 0 }).map((time, i) => time - from - i / 50);
    late(0, 2).forEach((off) => near(t, off, 0));
    audio.report(report(501, 48_000));
    near(t, audio.time(2 * 48_000, resumed * 1000) / TICKS, 2);
    audio.report(report(500 + resumed, 2 * 48_000));
    for (let at = 2.02; at < resumed; at += 0.02)
      near(t, audio.time(Math.round(at * 48_000), resumed * 1000) / TICKS, at);
    for (let at = resumed; at < resumed + 5; at++) {
      late(at, at + 1).forEach((off) => near(t, off, 0));
      audio.report(report(501 + at, Math.round((at + 1) * 48_000)));
    }
  }
});

/** Pictures and audio for so many seconds, the audio by a clock that is slow by a share: how far they are apart in the end, and how they were. */
function drift(seconds: number, slow: number, reports: readonly ('video' | 'audio')[], usesReports = true) {
  const told: number[] = [];
  const clock = new RtpClock(usesReports, false, (share) => told.push(share));
  const video = clock.track(90_000, false);
  const audio = clock.track(16_000, true);
  let seed = 3;
  const random = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
  let furthest = 0;
  let last = 0;
  let longest = 0;
  // by the instant of capture, in milliseconds; a tenth of the packets is late by up to 50 ms
  for (let at = 0; at < seconds * 1000; at += 20) {
    const late = random() < 0.1 ? random() * 50 : 0;
    if (at % 5000 === 2500) {
      if (reports.includes('video')) video.report(report(500 + at / 1000, Math.round(at * 90)));
      if (reports.includes('audio')) audio.report(report(500 + at / 1000, Math.round(at * 16 * (1 - slow))));
    }
    const sound = audio.time(Math.round(at * 16 * (1 - slow)), at + late) / TICKS;
    const picture = video.time(at * 90, at + late) / TICKS;
    longest = Math.max(longest, sound - last);
    last = sound;
    furthest = Math.max(furthest, Math.abs(picture - sound));
  }
  return { furthest, longest, told };
}

for (const reports of [[], ['audio'], ['video']] as const) {
  for (const slow of [0.02, 0.005, -0.02]) {
    test(`audio by a clock that is ${slow * 100} % slow, and reports of ${reports[0] ?? 'nothing'}: video follows, with a warning`, (t) => {
      const { furthest, longest, told } = drift(600, slow, reports);
      t.true(furthest < 0.31, `${furthest} s apart`);
      t.true(longest < 0.1, `a step of ${longest} s`);
      t.is(told.length, 1);
      near(t, told[0], slow, 0.002);
    });
  }
}

test('a slow clock that sender reports show is followed without a warning', (t) => {
  for (const slow of [0.02, 0.005]) {
    const { furthest, told } = drift(600, slow, ['audio', 'video']);
    t.true(furthest < 0.15, `${slow}: ${furthest} s apart`);
    t.deepEqual(told, []);
  }
});

test('a slow clock is followed where reports are ignored, too', (t) => {
  const { furthest, told } = drift(300, 0.02, ['audio', 'video'], false);
  t.true(furthest < 0.31, `${furthest} s apart`);
  t.is(told.length, 1);
});

test('tracks of one clock without reports stay as they came', (t) => {
  const { furthest, told } = drift(600, 0, []);
  t.true(furthest < 0.06, `${furthest} s apart`);
  t.deepEqual(told, []);
});
