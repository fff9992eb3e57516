import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import { Kiln } from '../support/server/kiln.ts';
import { MultitrackPublisher, type MultitrackOptions } from '../support/rtmp/multitrack-publisher.ts';
import { inPlace } from '../support/hls/playlist-uris.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const SAMPLERATE = 48_000;

async function start(t: ExecutionContext, rtmp = ''): Promise<Kiln> {
  const kiln = await Kiln.start({ llhls: '<SegmentDuration>2</SegmentDuration>', rtmp });
  t.teardown(() => kiln.stop());
  return kiln;
}

async function publish(
  t: ExecutionContext,
  options?: MultitrackOptions,
  started?: Kiln,
): Promise<{ kiln: Kiln; stream: StreamInfo }> {
  const kiln = started ?? (await start(t));
  const publisher = await MultitrackPublisher.start(kiln.ports.rtmp, 'live', options);
  t.teardown(() => publisher.close());
  return { kiln, stream: await kiln.liveStream('live') };
}

/** The master playlist, once there is one. */
async function master(kiln: Kiln): Promise<string> {
  return until('the master playlist', async () => {
    const answer = await fetch(kiln.httpUrl('/app/live/llhls.m3u8'));
    return answer.status === 200 && answer.text();
  });
}

/** What a second of the sound in a chunklist sounds like to ffmpeg: Hz. */
async function pitch(url: string): Promise<number> {
  const { stdout } = await run(
    'ffmpeg',
    ['-v', 'error', '-i', url, '-t', '1', '-ac', '1', '-ar', String(SAMPLERATE), '-f', 's16le', '-'],
    { encoding: 'buffer', timeout: PATIENCE_MS },
  );
  let rises = 0;
  for (let at = 2; at < stdout.length; at += 2) {
    if (stdout.readInt16LE(at) >= 0 && stdout.readInt16LE(at - 2) < 0) rises++;
  }
  return rises / (stdout.length / 2 / SAMPLERATE);
}

test('one stream brings sound in two languages, and LL-HLS plays each', async (t) => {
  const { kiln, stream } = await publish(t);
  t.deepEqual(
    stream.input.tracks.map(({ id, type, audio }) => [id, type, audio?.language, audio?.bitrateConf]),
    [
      [0, 'Video', undefined, undefined],
      [1, 'Audio', 'eng', 64_000],
      [3, 'Audio', 'kor', 64_000],
    ],
  );
  t.deepEqual(
    stream.outputs[0]?.tracks.map(({ video, audio }) => video?.codec ?? `${audio?.codec} ${audio?.language}`).sort(),
    ['AAC eng', 'AAC kor', 'H264', 'OPUS eng', 'OPUS kor'],
  );
  const playlist = await master(kiln);
  const media = [...playlist.matchAll(/^#EXT-X-MEDIA:TYPE=AUDIO,(.*)$/gm)].map(([, attributes = '']) => ({
    group: /GROUP-ID="([^"]+)"/.exec(attributes)?.[1],
    language: /LANGUAGE="([^"]+)"/.exec(attributes)?.[1],
    url: inPlace(/URI="([^"]+)"/.exec(attributes)?.[1] ?? '', kiln.httpUrl('/app/live/llhls.m3u8')),
  }));
  t.deepEqual(
    media.map(({ language }) => language),
    ['en', 'ko'],
  );
  t.is(media[0]?.group, media[1]?.group);
  const pitches = await Promise.all(media.map(({ url }) => pitch(url)));
  for (const [i, expected] of [440, 880].entries()) {
    t.true(Math.abs((pitches[i] as number) - expected) < 20, `${media[i]?.language} sounds at ${pitches[i]} Hz`);
  }
});

test('a source that sends a ladder of pictures has each of them in its output', async (t) => {
  const { kiln, stream } = await publish(t, { sizes: ['320x180', '160x90'], languages: ['eng'] });
  const videos = (tracks: StreamInfo['input']['tracks']) =>
    tracks.flatMap(({ video }) => (video ? [[video.width, video.bypass]] : []));
  t.deepEqual(videos(stream.input.tracks), [
    [320, false],
    [160, false],
  ]);
  t.deepEqual(videos(stream.outputs[0]?.tracks ?? []), [
    [320, true],
    [160, true],
  ]);
  const sizes = [...(await master(kiln)).matchAll(/RESOLUTION=(\d+x\d+)/g)].map(([, size]) => size);
  t.deepEqual(sizes.sort(), ['160x90', '320x180']);
});

interface Configuration {
  readonly ingest_endpoints: readonly { readonly url_template: string }[];
  readonly encoder_configurations: readonly { readonly width: number; readonly height: number }[];
}

test('an encoder that asks what to send has each of the configured sizes played, without transcoding', async (t) => {
  const ladder = [180, 90].map((height) => `<Video><Height>${height}</Height><Bitrate>200000</Bitrate></Video>`);
  const kiln = await start(t, `<EnhancedBroadcasting>${ladder.join('')}</EnhancedBroadcasting>`);
  const answer = await fetch(kiln.httpUrl('/app/GetClientConfiguration'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ authentication: 'live', preferences: { canvas_width: 320, canvas_height: 180 } }),
  });
  t.is(answer.status, 200);
  const { ingest_endpoints: endpoints, encoder_configurations: videos } = (await answer.json()) as Configuration;
  t.deepEqual(
    endpoints.map(({ url_template: url }) => url),
    [`rtmp://127.0.0.1:${kiln.ports.rtmp}/app/{stream_key}`],
  );
  const sizes = videos.map(({ width, height }) => `${width}x${height}`);
  t.deepEqual(sizes, ['320x180', '160x90']);
  const { stream } = await publish(t, { sizes, languages: ['eng'] }, kiln);
  t.true(stream.outputs[0]?.tracks.every(({ video }) => video?.bypass !== false));
  const listed = [...(await master(kiln)).matchAll(/RESOLUTION=(\d+x\d+)/g)].map(([, size]) => size);
  t.deepEqual(listed.sort(), sizes.toSorted());
});
