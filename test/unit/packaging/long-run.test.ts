import test from 'ava';
import { RUNS } from '../../../src/packaging/frame-run.ts';
import { unitsOf } from '../../../src/packaging/ts-units.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { startSegmenter } from '../../support/media/segmenter.ts';

const VIDEO = videoTrack();
const SOUND = audioTrack();
/** Seconds after which times in MPEG-TS wrap. */
const WRAP = 2 ** 33 / 90_000;
const HOURS_26 = 26 * 3600;

const media = (from: number, to: number) =>
  interleaved(videoPackets(VIDEO, { from, to, gop: 60 }), audioPackets(SOUND, { from, to }));

test('times in MPEG-TS begin anew behind a discontinuity, at the same segment of all tracks, before they would wrap', (t) => {
  for (const from of [94_990, 94_990.4, 94_998]) {
    const { segmenter, segments, push } = startSegmenter([VIDEO, SOUND], { form: RUNS, chunkDuration: 2 });
    const packets = media(from, from + 30);
    push(packets);
    segmenter.finish();
    const [video = [], audio = []] = [0, 1].map((id) =>
      segments(id).map(({ msn, discontinuity }) => [msn, discontinuity]),
    );
    t.deepEqual(audio, video);
    t.is(video.filter(([, discontinuity]) => discontinuity).length, 1);
    t.is(segmenter.progress.discontinuities, 1);
    t.true(
      segments(0).every(({ gap, duration }, at) => !gap && (at === 0 || at === video.length - 1 || duration === 2)),
    );
    let seen = 0;
    for (const { discontinuity, msn } of segments(0)) {
      const own = [VIDEO, SOUND].map((track) => ({
        track,
        runs: segments(track.id)
          .filter((segment) => segment.msn === msn)
          .flatMap(({ parts }) => parts.map(({ data }) => data)),
      }));
      const times = unitsOf(own).map(({ dts, track }) => dts / track.timebase.den);
      t.true(Math.max(...times) < WRAP - 1);
      t.true(Math.max(...times) - Math.min(...times) < 2.1, 'all of one timeline');
      if (discontinuity) t.true(Math.min(...times) < 2);
      seen += unitsOf([own[0] as (typeof own)[0]]).length;
    }
    const pictures = packets.filter(({ track }) => track === VIDEO);
    t.is(seen, pictures.length - pictures.findIndex(({ key }) => key));
  }
});

test('a stream that begins late, or comes back, has times in MPEG-TS that do not wrap', (t) => {
  const { segmenter, segments, push } = startSegmenter([VIDEO, SOUND], { form: RUNS, chunkDuration: 2 });
  push(media(0, 4));
  segmenter.finish();
  push(media(8 * HOURS_26, 8 * HOURS_26 + 4));
  segmenter.finish();
  const starts = segments(0).flatMap(({ parts: [first] }) => first?.data.start ?? []);
  t.true(starts.every((start) => start >= 0 && start / 90_000 < 95_000));
  t.deepEqual(
    segments(0).map(({ discontinuity }) => discontinuity),
    [false, false, true, false],
  );
});

test('times of fragments count on', (t) => {
  const { segments, push } = startSegmenter([VIDEO, SOUND]);
  const from = 2 ** 33 / 90_000 - 5;
  push(media(from, from + 20));
  for (const [id, den] of [
    [0, 90_000],
    [1, 48_000],
  ] as const) {
    t.true(segments(id).every(({ discontinuity }) => !discontinuity));
    const parts = segments(id).flatMap((segment) => segment.parts.map(({ data }) => parseFragment(data)));
    t.true(
      parts.every(
        ({ baseTime, duration }, at) =>
          at === 0 || baseTime === (parts[at - 1]?.baseTime ?? 0) + (parts[at - 1]?.duration ?? duration),
      ),
    );
    t.true((parts.at(-1)?.baseTime ?? 0) / den > WRAP);
  }
});
