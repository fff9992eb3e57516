import test from 'ava';
import { MILLISECONDS, VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import { Timeline, type SourceClock } from '../../../src/core/timeline.ts';

const RTMP: SourceClock = { timebase: MILLISECONDS, bits: 32 };
const MPEG_TS: SourceClock = { timebase: VIDEO_TIMEBASE, bits: 33 };
const AUDIO_48K = { num: 1, den: 48_000 };

/** Milliseconds of video dts. */
const ms = (ticks: number) => ticks / 90;

/** A timeline whose packets come when it is told. */
function arriving(zeroBased = true) {
  const arrival = { ms: 0 };
  return { timeline: new Timeline(RTMP, zeroBased, () => arrival.ms), arrival };
}

test('a zero-based timeline begins at its first timestamp, whatever it is', (t) => {
  const timeline = new Timeline(RTMP, true);
  const video = timeline.track(VIDEO_TIMEBASE);
  t.deepEqual(
    [5000, 5033, 5067].map((at) => video.next(at)),
    [0, 2970, 6030],
  );
});

test('an original timeline keeps the times of the source', (t) => {
  const video = new Timeline(RTMP, false).track(VIDEO_TIMEBASE);
  t.deepEqual(
    [5000, 5040].map((at) => video.next(at)),
    [450_000, 453_600],
  );
});

test('a start in front of the first packet keeps the earlier track at or after zero', (t) => {
  const timeline = new Timeline(RTMP, true);
  timeline.start(980);
  t.is(timeline.track(VIDEO_TIMEBASE).next(1000), 1800);
  t.is(timeline.track(AUDIO_48K).nextFrame(980, 1024), 0);
});

test('times go on through a wrap of 32 bits, and of 33', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  const stamps = [0xffff_ffd0, 0xffff_fff8, 0x20, 0x48];
  t.deepEqual(
    stamps.map((at) => ms(video.next(at))),
    [0, 40, 80, 120],
  );
  const transport = new Timeline(MPEG_TS, true).track(VIDEO_TIMEBASE);
  t.deepEqual(
    [2 ** 33 - 3600, 0, 3600].map((at) => transport.next(at)),
    [0, 3600, 7200],
  );
});

test('a wrap between the tracks keeps them together', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  t.is(ms(video.next(0xffff_fff0)), 0);
  t.is(audio.nextFrame(4, 1024), 20 * 48);
  t.is(ms(video.next(24)), 40);
});

test('fractions of a millisecond count', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  t.deepEqual(
    [0, 33.333333, 66.666667].map((at) => video.next(at)),
    [0, 3000, 6000],
  );
});

test('decoding times are strictly increasing when the source repeats or steps back a little', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  const out = [0, 40, 40, 30, 80].map((at) => video.next(at));
  t.deepEqual(out, [0, 3600, 3601, 3602, 7200]);
});

test('a clock that creeps backwards does not hold up the stream', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  let last = 0;
  for (let at = 100_000; at > 50_000; at -= 150) last = video.next(at);
  t.true(ms(last) > 2000, `${ms(last)} ms`);
});

test('a jump after a pause does not repeat the pause', (t) => {
  const { timeline, arrival } = arriving();
  const video = timeline.track(VIDEO_TIMEBASE);
  const out = [0, 40, 8040, 0, 40].map((at) => {
    arrival.ms = Math.max(arrival.ms + 40, at);
    return ms(video.next(at));
  });
  t.deepEqual(out, [0, 40, 8040, 8080, 8120]);
});

test('one wrong timestamp does not separate the tracks', (t) => {
  for (const wrong of [0, 3000, 90_000]) {
    const timeline = new Timeline(RTMP, true);
    const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
    timeline.start(0);
    for (let at = 0; at < 5000; at += 20) {
      video.next(at);
      audio.nextFrame(at, 960);
    }
    audio.nextFrame(wrong, 960);
    let [videoTime, audioTime] = [0, 0];
    for (let at = 5020; at < 8000; at += 20) {
      videoTime = ms(video.next(at));
      audioTime = audio.nextFrame(at, 960) / 48;
    }
    t.is(videoTime, 7980, `${wrong}`);
    t.true(Math.abs(audioTime - 7980) <= 60, `${wrong}: ${audioTime}`);
  }
});

test('a track that was silent while the clock restarted comes back in step', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  video.next(0);
  for (let at = 0; at <= 5000; at += 20) audio.nextFrame(at, 960);
  for (let at = 0; at <= 5000; at += 20) audio.nextFrame(at, 960);
  t.is(ms(video.next(5000)), 10_020);
});

test('a pause that is not too long stays a pause', (t) => {
  const { timeline, arrival } = arriving();
  const video = timeline.track(VIDEO_TIMEBASE);
  const out = [0, 40, 8040].map((at) => {
    arrival.ms = at;
    return ms(video.next(at));
  });
  t.deepEqual(out, [0, 40, 8040]);
});

test('a pause of a source that is ahead of its time is one at once', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  t.deepEqual(
    [0, 40, 8040, 8080].map((at) => ms(video.next(at))),
    [0, 40, 8040, 8080],
  );
});

test('frames that are seconds apart keep their times, though all come at once', (t) => {
  const { timeline, arrival } = arriving();
  const video = timeline.track(VIDEO_TIMEBASE);
  for (let i = 0; i < 100; i++) {
    arrival.ms += 5;
    t.is(ms(video.next(i * 3000)), i * 3000);
  }
});

for (const [name, stampOf] of Object.entries({
  'pictures of a film that is sent faster than it is played, and stands now and then': (i: number) => {
    return { at: i / 2, stamp: i * 10 + Math.floor(i / 40) * 5000, behind: 0 };
  },
  'slides that are sent in time, and then at once': (i: number) => {
    return { at: i < 40 ? i * 3000 : 120_000 + i * 5, stamp: i * 3000, behind: 0 };
  },
  'slides that are sent at once behind pictures that came in time, but for the first': (i: number) => {
    return i < 50
      ? { at: i * 40, stamp: i * 40, behind: 0 }
      : { at: 2000 + i, stamp: 2000 + (i - 50) * 8000, behind: 52 };
  },
  'slides at any distance behind pictures that came in time, but for the first': (i: number) => {
    if (i < 50) return { at: i * 40, stamp: i * 40, behind: 0 };
    return { at: 2000 + i, stamp: 2000 + (i - 50) * 5000 + (i % 3) * 1700, behind: 51 };
  },
})) {
  test(`frames keep their times: ${name}`, (t) => {
    const { timeline, arrival } = arriving();
    const video = timeline.track(VIDEO_TIMEBASE);
    for (let i = 0; i < 200; i++) {
      const { at, stamp, behind } = stampOf(i);
      arrival.ms = at;
      const time = ms(video.next(stamp));
      if (i >= behind) t.is(time, stamp, `${i}`);
    }
  });
}

test('every timestamp of a file is believed, however fast it is read', (t) => {
  const video = new Timeline(RTMP, true, null).track(VIDEO_TIMEBASE);
  const times = Array.from({ length: 100 }, (_, i) => i * 40 + (i > 50 ? 5000 : 0) + (i > 70 ? 9000 : 0));
  t.deepEqual(
    times.map((at) => ms(video.next(at))),
    times,
  );
});

for (const off of [-4_000_000, -3000, -400, 500, 2000, 8000, 9900, 4_000_000]) {
  test(`a timestamp that is ${off} ms off is not believed, and what comes after it goes on`, (t) => {
    for (const strays of ['video', 'audio']) {
      const { timeline, arrival } = arriving();
      const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
      timeline.start(10_000_000);
      for (let i = 0; i < 1000; i++) {
        const at = i * 40;
        arrival.ms = at;
        const stamp = (track: string): number => 10_000_000 + at + (track === strays && i % 75 === 74 ? off : 0);
        const [picture, sound] = [ms(video.next(stamp('video'))), audio.nextFrame(stamp('audio'), 1920) / 48];
        // one that is a little early is not told from one that is right
        const within = off > 0 && off < 1000 ? off : 60;
        t.true(Math.abs(picture - at) <= within && Math.abs(sound - at) <= within, `${at}: ${picture}, ${sound}`);
      }
    }
  });
}

test('frames of one packet whose timestamp is off are not believed either', (t) => {
  const { timeline, arrival } = arriving();
  const audio = timeline.track(AUDIO_48K);
  for (let packet = 0; packet < 100; packet++) {
    arrival.ms = packet * 80;
    for (let frame = 0; frame < 4; frame++) {
      const at = packet * 80 + frame * 20;
      t.is(audio.nextFrame(at + (packet === 50 ? 8000 : 0), 960) / 48, at);
    }
  }
});

test('pictures that are seconds apart are no strays', (t) => {
  const { timeline, arrival } = arriving();
  const video = timeline.track(VIDEO_TIMEBASE);
  for (let at = 0; at < 60_000; at += 3000) {
    arrival.ms = at;
    t.is(ms(video.next(at)), at);
  }
});

for (const seconds of [12, 15, 60]) {
  test(`frames that really are ${seconds} s apart keep their times, and go on as fast when the clock restarts`, (t) => {
    const { timeline, arrival } = arriving();
    const video = timeline.track(VIDEO_TIMEBASE);
    for (let i = 0; i < 40; i++) {
      arrival.ms = i * seconds * 1000 + (i % 3) * 900;
      const time = ms(video.next((i < 20 ? i : i - 20) * seconds * 1000));
      // behind a restart they are where they came
      t.true(Math.abs(time - i * seconds * 1000) <= (i < 20 ? 0 : 1800), `${i}: ${time}`);
    }
  });
}

test('a clock that restarts soon after one of few frames takes the time no further than has passed', (t) => {
  for (const hasAudio of [true, false]) {
    const { timeline, arrival } = arriving();
    const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
    for (let at = 0; at < 120_000; at += 20) {
      arrival.ms = at;
      const stamp = at < 80_000 ? at : at - 80_000;
      if (stamp % 15_000 === 0) t.is(ms(video.next(stamp)), at);
      if (hasAudio) t.true(Math.abs(audio.nextFrame(stamp, 960) / 48 - at) <= 60, `${at}`);
    }
  }
});

test('a pause of all tracks is as long as it was, whether the clock stood still in it or not', (t) => {
  for (const counted of [30_000, 20_000, 0]) {
    const { timeline, arrival } = arriving();
    const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
    for (let at = 0; at < 10_000; at += 40) {
      arrival.ms = at < 5000 ? at : at + 30_000;
      const stamp = at < 5000 ? at : at + counted;
      t.is(ms(video.next(stamp)), stamp);
      t.is(audio.nextFrame(stamp, 1920) / 48, stamp);
    }
  }
});

for (const ahead of [3000, 8000]) {
  for (const strays of ['video', 'audio', 'both']) {
    test(`timestamps of ${strays} that are ${ahead} ms ahead for a while leave the tracks together, and no gap`, (t) => {
      for (const length of [40, 80, 1000, 30_000]) {
        const { timeline, arrival } = arriving();
        const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
        for (let at = 0; at < 20_000; at += 20) {
          arrival.ms = at;
          const off = at >= 10_000 && at < 10_000 + length ? ahead : 0;
          const stampOf = (track: string) => at + (strays === track || strays === 'both' ? off : 0);
          if (at % 40 === 0) t.true(Math.abs(ms(video.next(stampOf('video'))) - at) <= 60, `video at ${at}`);
          t.true(Math.abs(audio.nextFrame(stampOf('audio'), 960) / 48 - at) <= 60, `audio at ${at}`);
        }
      }
    });
  }
}

test('the uptime of the machine is no pause of the source', (t) => {
  const { timeline, arrival } = arriving();
  arrival.ms = 86_400_000;
  timeline.start(0);
  const video = timeline.track(VIDEO_TIMEBASE);
  const times = [0, 3_600_000, 40].map((at) => ms(video.next(at)));
  t.deepEqual(times, [0, 20, 40]);
});

test('a stray timestamp is distinguished from a pause though the clock of the source is slow', (t) => {
  const { timeline, arrival } = arriving();
  const video = timeline.track(VIDEO_TIMEBASE);
  for (let i = 0; i < 20_000; i++) {
    arrival.ms = i * 40 * 1.01;
    t.is(ms(video.next(i * 40 + (i === 19_000 ? 5000 : 0))), i * 40);
  }
});

test('a jump ahead of the clock is no pause: the stream goes on at its own pace', (t) => {
  const video = new Timeline(RTMP, true).track(VIDEO_TIMEBASE);
  t.deepEqual(
    [0, 40, 3_600_000, 3_600_040].map((at) => ms(video.next(at))),
    [0, 40, 80, 120],
  );
});

test('a track may pause for long while another goes on', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  video.next(0);
  for (let at = 0; at <= 30_000; at += 20) audio.nextFrame(at, 960);
  t.is(ms(video.next(30_000)), 30_000);
});

test('a restart of the clock keeps both tracks in step, whichever hears of it first', (t) => {
  for (const firstToJump of ['video', 'audio'] as const) {
    const timeline = new Timeline(RTMP, true);
    const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
    for (let at = 0; at < 10_000; at += 40) {
      video.next(at);
      audio.nextFrame(at, 1920);
      audio.nextFrame(at + 20, 960);
    }
    const order = firstToJump === 'video' ? [video, audio] : [audio, video];
    const times: number[] = [];
    for (const at of [0, 40, 80]) {
      for (const track of order) times.push(track === video ? ms(video.next(at)) : audio.nextFrame(at, 1920) / 48);
    }
    for (let i = 0; i < times.length; i += 2) {
      t.true(Math.abs((times[i] as number) - (times[i + 1] as number)) <= 60, `${firstToJump} first: ${times}`);
    }
    t.true((times[0] as number) >= 9960 && (times[0] as number) <= 10_100, `${firstToJump} first: ${times}`);
  }
});

test('packets from before a restart that come after it stay where they belong', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  for (let at = 0; at <= 2000; at += 40) {
    video.next(at);
    audio.nextFrame(at - (at % 20), 1920);
  }
  t.is(ms(video.next(0)), 2040);
  t.is(audio.nextFrame(2040, 1920) / 48, 2040);
  t.is(ms(video.next(40)), 2080);
  t.is(audio.nextFrame(40, 1920) / 48, 2080);
  t.is(ms(video.next(80)), 2120);
});

test('a restart by less than the tolerance in one track is followed by it too', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  for (const at of [0, 40, 80, 120, 160, 200, 240]) video.next(at);
  for (const at of [0, 40, 80, 120, 160]) audio.nextFrame(at, 1920);
  t.is(ms(video.next(0)), 280);
  audio.nextFrame(0, 1920);
  t.is(ms(video.next(40)), 320);
  const sound = audio.nextFrame(40, 1920) / 48;
  t.true(Math.abs(sound - 320) <= 60, `${sound}`);
});

test('a track on a clock of its own is put beside the others', (t) => {
  const timeline = new Timeline(RTMP, true);
  const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
  t.is(ms(video.next(0)), 0);
  t.is(ms(video.next(40)), 40);
  t.is(audio.nextFrame(50_000_000, 1024), 40 * 48);
  t.is(ms(video.next(80)), 80);
  t.is(audio.nextFrame(50_000_021, 1024), 40 * 48 + 1024);
});

test('audio frames follow each other to the sample while milliseconds round', (t) => {
  const audio = new Timeline(RTMP, true).track({ num: 1, den: 44_100 });
  for (let frame = 0; frame < 1000; frame++) {
    t.is(audio.nextFrame(Math.round((frame * 1024_000) / 44_100), 1024), frame * 1024);
  }
});

test('audio that drifts from its clock is set anew, forward and back, and never repeats a time', (t) => {
  for (const pace of [1.02, 0.98]) {
    const audio = new Timeline(RTMP, true).track(AUDIO_48K);
    let last = -1;
    for (let frame = 0; frame < 3000; frame++) {
      const source = Math.round((frame * 1024 * pace) / 48);
      const dts = audio.nextFrame(source, 1024);
      t.true(dts > last);
      t.true(Math.abs(dts / 48 - source) <= 85, `frame ${frame} is ${dts / 48 - source} ms off`);
      last = dts;
    }
  }
});

test('a gap in the sound shows as a gap', (t) => {
  const audio = new Timeline(RTMP, true).track(AUDIO_48K);
  t.deepEqual(
    [0, 20, 40, 1040, 1060].map((at) => audio.nextFrame(at, 960)),
    [0, 960, 1920, 49_920, 50_880],
  );
});

test('sound behind frames that are missing is not early', (t) => {
  const audio = new Timeline(RTMP, true).track(AUDIO_48K);
  t.deepEqual(
    [0, 20, 60, 80, 140, 160].map((at) => audio.nextFrame(at, 960) / 48),
    [0, 20, 60, 80, 140, 160],
  );
  const aac = new Timeline(RTMP, true).track({ num: 1, den: 44_100 });
  for (const frame of [0, 1, 3, 4, 5, 7, 8, 10, 11]) {
    t.is(aac.nextFrame(Math.round((frame * 1024_000) / 44_100), 1024), frame * 1024);
  }
});

test('a track whose sampling rate changes goes on from where it was', (t) => {
  const audio = new Timeline(RTMP, true).track(AUDIO_48K);
  audio.nextFrame(0, 960);
  audio.nextFrame(20, 960);
  audio.setTimebase({ num: 1, den: 44_100 });
  t.is(audio.nextFrame(40, 1024), 1764);
  t.is(audio.nextFrame(63, 1024), 2788);
});

test('any sequence of timestamps comes out increasing and not negative', (t) => {
  let seed = 12345;
  const random = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0);
  for (let run = 0; run < 50; run++) {
    const timeline = new Timeline(RTMP, run % 2 === 0);
    const [video, audio] = [timeline.track(VIDEO_TIMEBASE), timeline.track(AUDIO_48K)];
    let [lastVideo, lastAudio] = [-1, -1];
    let clock = random();
    for (let i = 0; i < 500; i++) {
      clock = random() % 50 === 0 ? random() : (clock + (random() % 60) - 10) >>> 0;
      if (random() % 2 === 0) {
        const dts = video.next(clock);
        t.true(dts > lastVideo && Number.isSafeInteger(dts));
        lastVideo = dts;
      } else {
        const dts = audio.nextFrame(clock, 1024);
        t.true(dts > lastAudio && Number.isSafeInteger(dts));
        lastAudio = dts;
      }
    }
    // jumps do not pile up: 500 packets stay within what 500 longest pauses of their pace could take
    if (run % 2 === 0) t.true(ms(lastVideo) < 500 * 10_000);
  }
});
