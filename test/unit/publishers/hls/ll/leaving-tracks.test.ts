import test, { type ExecutionContext } from 'ava';
import type { OutputStream } from '../../../../../src/core/output-stream.ts';
import type { MediaTrack } from '../../../../../src/core/track.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import {
  audioPackets,
  audioTrack,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../../support/media/packets.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const CONFIG = { segmentDuration: 2, segmentCount: 4 };
const VIDEO = videoTrack();
const AUDIO = audioTrack();
const MASTERS = ['/app/stream/llhls.m3u8', '/app/stream/ts:playlist.m3u8'];
const IDR = 0x65;

/** Brings the tracks that a stream has to a media time, in seconds. */
function feeder(output: OutputStream) {
  let from = 0;
  return (to: number): void => {
    const span = { from, to, gop: 60 };
    const of = (track: MediaTrack) => {
      if (track.type === 'audio') return audioPackets(track, span);
      return videoPackets(track, span).map((packet) => {
        const unit = withNal(packet);
        if (unit.key) unit.data[4] = IDR;
        return unit;
      });
    };
    for (const packet of interleaved(...output.tracks.map((track) => of(track as MediaTrack)))) output.write(packet);
    from = to;
  };
}

/** A stream of video and audio that has been played for some seconds. */
async function played(t: ExecutionContext) {
  virtualTime(t);
  const server = await openLlhls(t, { llhls: { ...CONFIG, chunkDuration: 0.5 }, hls: CONFIG });
  const { output } = server.goLive([VIDEO, AUDIO]);
  const advance = feeder(output);
  advance(8.1);
  const urls = (await Promise.all(MASTERS.map((master) => server.children(master)))).flat();
  t.is(urls.length, 3);
  return { ...server, output, advance, urls };
}

const msns = (body: string) => [...body.matchAll(/^seg_\d+_(\d+)_/gm)].map(([, msn]) => Number(msn));

for (const [what, left] of [
  ['audio', VIDEO],
  ['video', AUDIO],
] as const) {
  test(`${what} leaves the stream and returns: all playlists that players have go on`, async (t) => {
    const { output, advance, urls, get } = await played(t);
    output.setTracks([left]);
    advance(20.1);
    const during = await Promise.all(urls.map((url) => get(url)));
    for (const [at, { statusCode, body }] of during.entries()) {
      t.is(statusCode, 200, urls[at]);
      t.true((msns(body).at(-1) as number) >= 8, urls[at]);
      t.false(/EXT-X-(GAP|DISCONTINUITY)/.test(body), urls[at]);
    }
    output.setTracks([VIDEO, AUDIO]);
    advance(30.1);
    for (const url of urls) {
      const { statusCode, body } = await get(url);
      t.is(statusCode, 200, url);
      t.true((msns(body).at(-1) as number) >= 12, url);
      t.false(/EXT-X-(GAP|DISCONTINUITY)/.test(body), url);
      const [segment = ''] = /^seg_.*$/m.exec(body) ?? [];
      t.is((await get(`${url.slice(0, url.lastIndexOf('/'))}/${segment}`)).statusCode, 200, url);
    }
  });
}
