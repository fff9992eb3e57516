import test, { type ExecutionContext } from 'ava';
import type { OutputStream } from '../../../../../src/core/output-stream.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/hls/llhls-nodes.ts';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const TRACKS = [videoTrack(), audioTrack()];
const LOW_LATENCY = /#EXT-X-(?:PART|PRELOAD-HINT|RENDITION-REPORT|SERVER-CONTROL|SKIP)/;
const ENDED = /\n#EXT-X-ENDLIST\n$/;

async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const server = await openLlhls(t, { ...setup, llhls: LLHLS });
  const { input, output } = server.goLive(TRACKS);
  const conclude = (urgent: boolean): void =>
    server.publisher.live(server.application, 'stream')?.stream.conclude(urgent);
  return { ...server, input, output, advance: feeder(output), conclude };
}

const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;
const segments = (text: string) => [...text.matchAll(/^(seg_\S+)$/gm)].map(([, name]) => name as string);
const lastMsn = (text: string) => Number(/^seg_\d+_(\d+)_/.exec(segments(text).at(-1) ?? '')?.[1]);
const seconds = (text: string) => [...text.matchAll(/#EXTINF:([\d.]+)/g)].map(([, value]) => Number(value)).at(-1);

test('urgently concluded playlists end now, and waiting requests are answered', async (t) => {
  const { get, advance, children, conclude } = await live(t);
  advance(8.7);
  const [audio = '', video = ''] = await children();
  const before = (await get(video)).body;
  t.notRegex(before, ENDED);
  const [, hint = ''] = /PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(before) ?? [];
  const blocked = get(`${video}?_HLS_msn=${lastMsn(before) + 2}`);
  const hinted = get(sibling(video, hint));
  conclude(true);
  const answered = await blocked;
  t.is(answered.statusCode, 200);
  t.is((await hinted).statusCode, 200, 'what had come of it');
  const never = hint.replace(/(_\d+_)(\d+)(_video_)/, (_, from, part, to) => `${from}${Number(part) + 1}${to}`);
  t.is((await get(sibling(video, never))).statusCode, 404);
  for (const url of [video, audio]) {
    for (const query of ['', '?_HLS_msn=99&_HLS_part=3', '?_HLS_skip=YES', '?_HLS_legacy=YES']) {
      const { statusCode, body } = await get(`${url}${query}`);
      t.is(statusCode, 200, query);
      t.regex(body, ENDED, query);
      t.notRegex(body, LOW_LATENCY, query);
    }
  }
  t.is(answered.body, (await get(video)).body);
  t.is(lastMsn(answered.body), lastMsn(before) + 1);
  t.true((seconds(answered.body) ?? 9) < 1, 'the last segment is what had come');
  advance(20);
  t.is((await get(video)).body, answered.body, 'nothing comes after it');
  t.is((await get('/app/stream/llhls.m3u8')).statusCode, 200);
  for (const name of segments(answered.body)) t.is((await get(sibling(video, name))).statusCode, 200, name);
});

test('held requests end with the growing segments where there is no urgency', async (t) => {
  const { get, advance, children, conclude } = await live(t);
  advance(8.7);
  const [audio = '', video = ''] = await children();
  const before = (await get(video)).body;
  conclude(false);
  advance(9.9);
  t.notRegex((await get(video)).body, ENDED);
  advance(12);
  const after = (await get(video)).body;
  t.regex(after, ENDED);
  t.regex((await get(audio)).body, ENDED);
  t.is(lastMsn(after), lastMsn(before) + 1);
  t.is(seconds(after), 2);
});

test('a conclusion that is under way can be hurried, and comes at the latest with the end of the stream', async (t) => {
  const { get, advance, children, conclude, input } = await live(t);
  advance(8.7);
  const [, video = ''] = await children();
  conclude(false);
  conclude(true);
  t.regex((await get(video)).body, ENDED);
  conclude(false);
  input.close('the publisher has gone');
  t.regex((await get(video)).body, ENDED, 'the window stays');
});

test('a stream that ends while its conclusion is under way is concluded', async (t) => {
  const { get, advance, children, conclude, input } = await live(t);
  advance(8.7);
  const [, video = ''] = await children();
  conclude(false);
  input.close('the publisher has gone');
  t.regex((await get(video)).body, ENDED);
});

test('the next publisher begins with playlists of its own', async (t) => {
  const { get, advance, children, conclude, input, goLive } = await live(t);
  advance(8.7);
  const [, video = ''] = await children();
  conclude(true);
  input.close('the publisher has gone');
  const next = goLive(TRACKS);
  feeder(next.output)(5);
  const [, fresh = ''] = await children();
  const keyOf = (url: string) => /video_(\w{8})_llhls/.exec(url)?.[1];
  t.not(keyOf(fresh), keyOf(video));
  const { body } = await get(fresh);
  t.notRegex(body, ENDED);
  t.regex(body, /MEDIA-SEQUENCE:0\n/);
  t.notRegex(body, /DISCONTINUITY/);
  t.is((await get(video)).statusCode, 404);
});

test('HLS with MPEG-TS ends in the same way', async (t) => {
  const ts = { segmentDuration: 2, segmentCount: 3 };
  virtualTime(t);
  const server = await openLlhls(t, { llhls: LLHLS, hls: ts });
  const { output } = server.goLive(TRACKS);
  feeder(output)(8.7);
  const [video = ''] = await server.children('/app/stream/ts:playlist.m3u8');
  t.notRegex((await server.get(video)).body, ENDED);
  for (const one of server.publishers) one.live(server.application, 'stream')?.stream.conclude(true);
  const { body } = await server.get(video);
  t.regex(body, ENDED);
  t.regex(body, /#EXTINF:0\.\d+,\nseg_\d+_4_hls\.ts\n/);
});

test('players of every node get the end, waiting ones too, and the next publisher starts anew on another node', async (t) => {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 3);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { llhls: LLHLS });
  const [a, b] = await Promise.all([open('a'), open('b')]);
  const first = await a.goLive(TRACKS);
  await untilKnown(b, a);
  const advance = feeder(first.output as OutputStream);
  advance(8.7);
  const [, video = ''] = await b.children();
  const before = (await b.get(video)).body;
  const blocked = b.get(`${video}?_HLS_msn=${lastMsn(before) + 2}`);
  await until('the other node waits for it', () => b.asked.some((path) => path.includes('chunklist')));
  a.publisher.live(a.application, 'stream')?.stream.conclude(true);
  t.regex((await blocked).body, ENDED);
  const { body } = await b.get(`${video}?_HLS_msn=99`);
  t.regex(body, ENDED);
  t.notRegex(body, LOW_LATENCY);
  t.is(body, (await a.get(video)).body);
  first.input.close('the publisher has gone');
  const next = await b.goLive(TRACKS);
  feeder(next.output as OutputStream)(5);
  await untilKnown(a, b);
  const [, fresh = ''] = await a.children();
  t.notRegex((await a.get(fresh)).body, /ENDLIST|DISCONTINUITY|GAP/);
});
