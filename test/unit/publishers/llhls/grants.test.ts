import test, { type ExecutionContext } from 'ava';
import { openLlhls, type LlhlsSetup } from '../../../support/llhls.ts';
import { feeder } from '../../../support/llhls-nodes.ts';
import { GUARDED, NotedOpenings } from '../../../support/openings.ts';
import { audioTrack, videoTrack } from '../../../support/packets.ts';
import { until } from '../../../support/until.ts';
import { virtualTime } from '../../../support/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const TRACKS = [videoTrack(), audioTrack()];
const OVER = 'its allowed time is over';

/** A guarded stream that can be played. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  const openings = new NotedOpenings('a');
  const llhls = { segmentDuration: 0.5, chunkDuration: 0.25, ...setup.llhls };
  const access = { guards: [openings.guard], openings };
  const server = await openLlhls(t, { vhost: GUARDED, ...setup, access, llhls });
  const { input, output } = server.goLive(TRACKS);
  const advance = feeder(output);
  advance(3.1);
  return { ...server, openings, input, output, advance };
}

/** Brings a stream of one application back. */
function continued({ goLive }: Awaited<ReturnType<typeof live>>) {
  const { output } = goLive(TRACKS);
  feeder(output)(3.1);
  return output;
}

const sibling = (url: string, name: string) => `${url.slice(0, url.lastIndexOf('/'))}/${name}`;

test('guarded: what a master playlist names is served with its token, and refused without', async (t) => {
  const { get, children, output } = await live(t);
  for (const url of await children()) {
    const { statusCode, body } = await get(url);
    t.is(statusCode, 200);
    const [, init = ''] = /MAP:URI="([^"]+)"/.exec(body) ?? [];
    t.is((await get(sibling(url, init))).statusCode, 200);
    const bare = `/app/stream/${url.slice(url.lastIndexOf('/') + 1)}`;
    t.like(await get(bare), { statusCode: 401, body: '' });
    t.is((await get(`/app/stream/${init}`)).statusCode, 401);
    t.like(await get(url.replace('/app/stream/A', '/app/stream/B')), { statusCode: 401, body: '' });
  }
  t.is(output.sessions.size, 1);
});

test('guarded: only who has a token learns that a stream is not there', async (t) => {
  const { get, children, input, output } = await live(t);
  const [url = ''] = await children();
  t.is((await get('/app/other/chunklist_0_video_abcdefgh_llhls.m3u8')).statusCode, 401);
  t.is((await get(url.replace('/app/stream/', '/app/other/'))).statusCode, 401);
  const over = input.continuity;
  t.truthy(over);
  input.close('the publisher left', { over: true });
  t.true(output.closed);
  t.is((await get(url)).statusCode, 404);
});
