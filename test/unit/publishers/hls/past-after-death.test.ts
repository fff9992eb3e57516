import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Playlist } from '../../../../src/core/playlist.ts';
import { openLlhlsNode } from '../../../support/hls/llhls-nodes.ts';
import { PlaylistHistory } from '../../../support/hls/playlist-history.ts';
import {
  audioPackets,
  audioTrack,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../support/media/packets.ts';
import { mediaTime } from '../../../support/media/segmenter.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const SMALL = videoTrack({ id: 2, name: 'small', bypass: false, width: 320, height: 180, bitrate: 300_000 });
const TRACKS = [VIDEO, AUDIO, SMALL];
const LADDER: Playlist = {
  name: 'ladder',
  fileName: 'ladder',
  renditions: [
    { name: 'high', videoVariantName: VIDEO.name, audioVariantName: AUDIO.name },
    { name: 'low', videoVariantName: 'small', audioVariantName: AUDIO.name },
  ],
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: 0, enableTsPackaging: true },
};
const WINDOW = { segmentDuration: 2, segmentCount: 4 };
const STEP = 0.5;
/** Seconds of the stream before the death, and after it: until its gaps have left the window. */
const BEFORE = 13;
const AFTER = 13;
/** Seconds that the server is away. */
const AWAY = 7.3;

/** A stream of a server that starts with what is on the disk. */
async function live(t: ExecutionContext, tempStoragePath: string) {
  const dvr = { enable: true, tempStoragePath, maxDuration: 600 };
  const setup = { llhls: { ...WINDOW, chunkDuration: 0.5, dvr }, hls: { ...WINDOW, dvr }, playlists: [LADDER] };
  const node = await openLlhlsNode(t, MemoryCluster.create(t, 1), 'a', setup);
  const { input, output } = await node.goLive(TRACKS);
  const begun = Date.now();
  let at = 0;
  const write = (packet: Packet): void => {
    input.arrival.note(packet, begun + mediaTime(packet) * 1000);
    output.write(packet);
  };
  /** Brings the stream on to a media time, in seconds. @param look called after each step */
  const advance = async (to: number, look: () => Promise<void>) => {
    for (; at < to; at += STEP) {
      const span = { from: at, to: Math.min(at + STEP, to) };
      const media = TRACKS.map((track) =>
        track.type === 'video' ? videoPackets(track, span).map(withNal) : audioPackets(track, span),
      );
      interleaved(...media).forEach(write);
      await delay(STEP * 1000);
      await look();
    }
  };
  return { node, advance };
}

/** Removes the last segments of a media playlist from its journal: those that a server did not write before it died. */
async function shorten(folder: string, list: string, segments: number): Promise<void> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => /run_0_\w+\.journal$/.test(name));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const at = texts.findIndex((text) => text.includes(`"list":"${list}`));
  const lines = (texts[at] ?? '').split('\n');
  const last = lines.filter((line) => line.includes(`"list":"${list}`)).slice(-segments);
  await writeFile(join(folder, names[at] ?? ''), lines.filter((line) => !last.includes(line)).join('\n'));
}

test('renditions agree after a server died that had written more segments of some than of others', async (t) => {
  virtualTime(t);
  const root = await mkdtemp(join(tmpdir(), 'kiln-death-'));
  t.teardown(() => rm(root, { recursive: true, force: true, maxRetries: 5 }));
  const written = join(root, 'written');
  const first = await live(t, written);
  await first.advance(BEFORE, () => Promise.resolve());
  const left = join(root, 'left');
  await cp(written, left, { recursive: true });
  await shorten(left, 'chunklist_1_audio', 1);
  await shorten(left, 'medialist_', 2);
  await delay(AWAY * 1000);
  const { node, advance } = await live(t, left);
  const masters = ['/app/stream/ladder.m3u8', '/app/stream/ts:ladder.m3u8'];
  const histories = masters.map(
    (master) =>
      new PlaylistHistory(async (url) => {
        const { statusCode, body } = await node.get(url);
        return statusCode === 200 ? body : undefined;
      }, master),
  );
  await advance(AFTER, async () => {
    for (const history of histories) await history.look();
  });
  for (const history of histories) {
    t.true(history.size > 5);
    // gaps may be more than there was time for
    t.deepEqual(history.broken(['dates-overlap']), []);
  }
});
