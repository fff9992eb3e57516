import test from 'ava';
import { until } from '../../support/time/until.ts';
import { FFMPEGS } from '../../support/media/ffmpeg.ts';
import { audioJob, changed, imageJob, PICTURE, recordSource, SOUND, videoJob } from './command-support.ts';
import { startWork, type Recording } from '../../unit/transcode/run-command.ts';

let source: Recording;
test.before(async () => {
  source = await recordSource({ seconds: 2 });
});

const silent = (recording: Recording, stream: number) => changed(recording, stream, () => []);

for (const [name, ffmpeg] of FFMPEGS) {
  test.serial(`${name}: no encoder waits for a frame that comes later, whatever the others' rates are`, async (t) => {
    const jobs = [
      videoJob(),
      videoJob({ framerate: 10 }),
      videoJob({ codec: 'VP8' }),
      videoJob({ codec: 'H265', modules: 'x265' }),
      videoJob({ codec: 'VP9' }),
      videoJob({ codec: 'AV1', modules: 'libaom' }),
      imageJob('JPEG'),
      imageJob('PNG'),
      imageJob('WEBP'),
    ];
    const running = await startWork(ffmpeg, source, { tracks: [PICTURE, SOUND], jobs });
    t.teardown(() => running.stop());
    const frames = [60, 20, 60, 60, 60, 60, 2, 2, 2];
    await until('every frame is out', () => frames.every((count, job) => (running.counts[job] as number) >= count));
    t.deepEqual(running.counts, frames);
  });

  test.serial(`${name}: a track that is silent holds up no other`, async (t) => {
    const jobs = [videoJob(), audioJob({ codec: 'OPUS' }), audioJob()];
    const pictures = await startWork(ffmpeg, silent(source, 1), { tracks: [PICTURE, SOUND], jobs });
    t.teardown(() => pictures.stop());
    await until('every picture is out', () => (pictures.counts[0] as number) >= 60);
    t.deepEqual(pictures.counts, [60, 0, 0]);
    const sounds = await startWork(ffmpeg, silent(source, 0), { tracks: [PICTURE, SOUND], jobs });
    t.teardown(() => sounds.stop());
    await until('every sound is out', () => (sounds.counts[1] as number) > 98 && (sounds.counts[2] as number) > 90);
    t.is(sounds.counts[0], 0);
  });
}
