import test from 'ava';
import HLS from 'hls-parser';
import { writeCue } from '../../../../src/core/subtitle-cue.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../support/hls/llhls-nodes.ts';
import { urisOf } from '../../../support/hls/playlist-uris.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { MemoryCluster } from '../../../support/memory-cluster/cluster.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const WINDOW = { segmentDuration: 2, segmentCount: 4 };
const APPLICATION = {
  name: 'app',
  type: 'live',
  publishers: { llhls: { ...WINDOW, chunkDuration: 0.5 }, hls: WINDOW },
  subtitles: { enable: true, rendition: [{ label: 'English', language: 'en' }] },
};
const KINDS = [
  { kind: 'LL-HLS', master: '/app/stream/llhls.m3u8', map: 'MPEGTS:0' },
  // times in MPEG-TS are a second later
  { kind: 'HLS with MPEG-TS', master: '/app/stream/ts:playlist.m3u8', map: 'MPEGTS:90000' },
];

for (const { kind, master, map } of KINDS)
  test(`subtitles of ${kind} are the same on every node`, async (t) => {
    virtualTime(t);
    const nodes = MemoryCluster.create(t, 1);
    const setup = { hls: {}, vhost: { applications: [APPLICATION] } };
    const [a, b] = await Promise.all(['a', 'b'].map((id) => openLlhlsNode(t, nodes, id, setup)));
    if (a === undefined || b === undefined) throw new Error('no nodes');
    const { input, output } = await a.goLive([videoTrack(), audioTrack()]);
    output.setTracks(input.tracks);
    await untilKnown(b, a);
    const [track] = input.tracks.filter(({ type }) => type === 'subtitle');
    if (track === undefined) throw new Error('no subtitles');
    const advance = feeder(output);
    advance(5);
    const data = writeCue({ settings: 'line:0', text: 'Hello' });
    output.write({ track, dts: 5100, pts: 5100, duration: 2000, key: true, data });
    advance(10.2);

    const read = async (node: typeof a, url: string) => {
      const { statusCode, body, headers } = await node.get(url);
      t.is(statusCode, 200, url);
      return { body, type: headers['content-type'] };
    };
    HLS.setOptions({ strictMode: true });
    const listed = (await read(b, master)).body;
    const parsed = HLS.parse(listed);
    t.true(parsed.isMasterPlaylist && parsed.variants.every(({ subtitles }) => subtitles[0]?.name === 'English'));
    const [uri = ''] = /TYPE=SUBTITLES.*URI="([^"]+)"/.exec(listed)?.slice(1) ?? [];
    const list = new URL(uri, `http://kiln${master}`).pathname;
    const { body } = await read(b, list);
    t.is((await read(a, list)).body, body);
    t.notThrows(() => HLS.parse(body));
    const files = urisOf(body.replace(/#EXT-X-PRELOAD-HINT.*/, ''), list).filter((one) => one.includes('.vtt'));
    const texts = await Promise.all(
      files.map(async (file) => {
        const own = await read(a, file);
        t.deepEqual(await read(b, file), own);
        t.is(own.type, 'text/vtt');
        return own.body;
      }),
    );
    const having = texts.filter((text) => text.includes('00:00:05.100 --> 00:00:07.100 line:0\nHello\n'));
    t.true(having.length >= 2);
    t.true(texts.every((text) => text.startsWith(`WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,${map}\n`)));
    const [video = ''] = urisOf(listed, master).filter((one) => !one.includes('_subtitle_') && one !== list);
    const wrong = video.replace(/(?:chunklist|medialist)_(\d+)_/, 'seg_$1_3_').replace('.m3u8', '.vtt');
    t.is((await a.get(wrong)).statusCode, 404);
  });
