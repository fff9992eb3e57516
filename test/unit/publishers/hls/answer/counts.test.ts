import test from 'ava';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';

const MASTER = '/app/stream/llhls.m3u8';

test('requests are counted by kind and status, and when a player has its first media', async (t) => {
  const { publisher, registry, goLive, get, children } = await openLlhls(t, {
    llhls: { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 },
  });
  const { output } = goLive([videoTrack(), audioTrack()]);
  const span = { from: 0, to: 5, gop: 60 };
  for (const packet of interleaved(videoPackets(videoTrack(), span), audioPackets(audioTrack(), span)))
    output.write(packet);
  const { counts } = publisher;
  const answered = () =>
    Object.fromEntries(Array.from(counts.requests, ([kind, statuses]) => [kind, Object.fromEntries(statuses)]));

  const [chunklist = ''] = await children(MASTER);
  t.deepEqual(answered(), { master: { 200: 1 } });
  await until('the start of the stream is over', async () => (await get(chunklist)).statusCode === 200);
  const { body } = await get(chunklist);
  const at = (name: string) => `${chunklist.slice(0, chunklist.lastIndexOf('/'))}/${name}`;
  const [, init = ''] = /EXT-X-MAP:URI="([^"]+)"/.exec(body) ?? [];
  const [, part = ''] = /EXT-X-PART:.*URI="([^"]+)"/.exec(body) ?? [];
  const [, segment = ''] = /^(seg[^\n]+)$/m.exec(body) ?? [];
  await get(at(init));
  t.is(registry.counters.viewing.joins.size, 0);
  await get(at(part));
  await get(at(segment));
  await get(at('seg_0_99_video_none_llhls.m4s'));
  await get('/app/other/llhls.m3u8');
  await get('/app/stream/x/anything.m4s');
  const { chunklist: lists, ...others } = answered();
  t.true((lists?.[200] ?? 0) >= 2);
  t.deepEqual(others, {
    master: { 200: 1, 404: 1 },
    init: { 200: 1 },
    part: { 200: 1 },
    segment: { 200: 1, 404: 1 },
    other: { 401: 1 },
  });
  const joins = registry.counters.viewing.joins.get('llhls');
  t.deepEqual(
    joins?.counts.reduce((sum, count) => sum + count),
    1,
  );
});
