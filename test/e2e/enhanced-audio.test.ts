import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { buildFlacHeader } from '../../src/codecs/flac.ts';
import type { AudioTrack, VideoTrack } from '../../src/core/track.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { PlayerPage } from '../support/hls/player-page.ts';
import { codedPackets, type Coded } from '../support/media/coded-packets.ts';
import { readFrames } from '../support/media/frame-hashes.ts';
import { AAC, BYPASS, ladderXml } from '../support/media/ladder-config.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { codecsOf, probe } from '../support/media/probe.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';
import type { Media } from '../support/webrtc/webrtc-media.ts';

/* Codecs of audio that only Enhanced RTMP brings over RTMP, passed on as they come. */

const APP = '/v1/vhosts/default/apps/app';
const SECONDS = 3;
const SOUND = '<Audio><Name>sound</Name><Bypass>true</Bypass></Audio>';
const playlist = (name: string, audio: string) =>
  `<Playlist><FileName>${name}</FileName><Options><EnableTsPackaging>true</EnableTsPackaging></Options>` +
  `<Rendition><Name>one</Name><Video>source</Video><Audio>${audio}</Audio></Rendition></Playlist>`;

const folder = mkdtempSync(join(tmpdir(), 'kiln-enhanced-audio-'));
const kiln = await Kiln.start({
  llhls: '<ChunkDuration>0.25</ChunkDuration><SegmentDuration>1</SegmentDuration>',
  hls: '<SegmentDuration>1</SegmentDuration>',
  application: ladderXml([BYPASS, SOUND, AAC], { playlists: playlist('passed', 'sound') + playlist('encoded', 'aac') }),
  publishers: `<FILE><RootPath>${folder}</RootPath></FILE>`,
});
test.after.always(async () => {
  await kiln.stop();
  rmSync(folder, { recursive: true });
});

/** Publishes a video with audio of a codec, again and again. @returns MD5 of the frames of its audio */
async function publish(t: ExecutionContext, stream: string, codec: NonNullable<Coded['audio']>): Promise<Set<string>> {
  const packets = codedPackets({ video: { codec: 'H264' }, audio: codec, seconds: SECONDS });
  const video = mediaOf<VideoTrack>(
    packets.filter(({ track }) => track.type === 'video'),
    3600,
  );
  const audio = mediaOf<AudioTrack>(packets.filter(({ track }) => track.type === 'audio'));
  const { config } = audio.track;
  const track =
    codec === 'FLAC' && config !== undefined ? { ...audio.track, config: buildFlacHeader(config) } : audio.track;
  const publisher = await MediaPublisher.start(kiln.ports.rtmp, stream, [{ video, audio: { ...audio, track } }]);
  t.teardown(() => publisher.close());
  return new Set(audio.frames.map(({ data }) => createHash('md5').update(data).digest('hex')));
}

function mediaOf<T extends VideoTrack | AudioTrack>(
  packets: ReturnType<typeof codedPackets>,
  ticks?: number,
): Media<T> {
  const track: unknown = packets[0]?.track;
  return {
    track: track as T,
    frames: packets.map(({ data, key, duration, pts, dts }) => ({
      data,
      key: key === true,
      duration: ticks ?? duration,
      delay: pts - dts,
    })),
  };
}

test('FLAC is played by hls.js in Chromium, recorded in MP4 as it came, and encoded', async (t) => {
  const sent = await publish(t, 'flac', 'FLAC');
  const stream = await kiln.liveStream('flac');
  t.is(stream.input.tracks.find(({ audio }) => audio)?.audio?.codec, 'FLAC');
  const record = { id: 'flac', stream: { name: 'flac', variantNames: ['source', 'sound'] }, filePath: 'flac.mp4' };
  t.is((await kiln.api(`${APP}:startRecord`, 'POST', record)).status, 200);

  const master = await until('the master playlist', async () => {
    const answer = await fetch(kiln.httpUrl('/app/flac/passed.m3u8'));
    return answer.status === 200 && answer.text();
  });
  t.regex(master, /CODECS="avc1\.[0-9a-f]{6},fLaC"/);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await PlayerPage.open(browser, 'hls', kiln.httpUrl('/app/flac/passed.m3u8'));
  await page.play(kiln.httpUrl('/app/flac/passed.m3u8'));
  await page.plays(3, Infinity);
  await until(
    'audio is decoded',
    async () =>
      ((await page.page.evaluate('document.querySelector("video").webkitAudioDecodedByteCount')) as number) > 0,
  );
  t.deepEqual(codecsOf(await probe(kiln.httpUrl('/app/flac/encoded.m3u8'))), ['aac', 'h264']);

  t.is((await kiln.api(`${APP}:stopRecord`, 'POST', { id: 'flac' })).status, 200);
  // it has its name when it is complete
  const path = await until('the file', async () => (await readdir(folder)).find((name) => name === 'flac.mp4'));
  const recorded = readFrames(['-i', join(folder, path)], 'audio');
  t.true(recorded.length > 10);
  t.deepEqual(
    recorded.filter((frame) => !sent.has(frame)),
    [],
  );
});

for (const codec of ['AC3', 'EAC3'] as const)
  test(`${codec} is played by HLS with MPEG-TS, and encoded`, async (t) => {
    await publish(t, codec, codec);
    const stream = await kiln.liveStream(codec);
    t.is(stream.input.tracks.find(({ audio }) => audio)?.audio?.codec, codec);
    const playable = (path: string) =>
      until(path, async () => (await fetch(kiln.httpUrl(path))).status === 200 && kiln.httpUrl(path));
    t.deepEqual(codecsOf(await probe(await playable(`/app/${codec}/ts:passed.m3u8`))), [codec.toLowerCase(), 'h264']);
    t.deepEqual(codecsOf(await probe(await playable(`/app/${codec}/encoded.m3u8`))), ['aac', 'h264']);
  });
