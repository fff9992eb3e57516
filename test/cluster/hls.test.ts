import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import { aac } from '../support/media/aac.ts';
import { decode } from '../support/media/decoder.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const CONFIG = '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount>';
const MASTER = '/app/live/ts:playlist.m3u8';
/** As long as whole frames of both last, so that it can be looped. */
const SECONDS = 3.2;
const scene = {
  video: await h264({ width: 160, height: 90, fps: 15, gop: 16, seconds: SECONDS, kbit: 100 }),
  audio: await aac(440, {}, SECONDS),
};

/** Publishes to a node as soon as that takes it. */
async function publish(t: ExecutionContext, node: Kiln): Promise<void> {
  const publisher = await until('the node takes the stream', () =>
    MediaPublisher.start(node.ports.rtmp, 'live', [scene]).catch((error: Error) => {
      if (/exists|BadName|Denied/i.test(error.message)) return undefined;
      throw error;
    }),
  );
  t.teardown(() => publisher.close());
}

/** A player that takes every segment of the variant it finds on one node. */
class Player {
  readonly segments = new Map<number, Buffer>();
  /** Numbers of segments that begin behind a discontinuity. */
  readonly breaks = new Set<number>();
  readonly list: string;
  readonly #node: Kiln;

  private constructor(node: Kiln, list: string) {
    this.#node = node;
    this.list = list;
  }

  static async start(node: Kiln): Promise<Player> {
    const master = await until('there is something to play', async () => {
      const answer = await fetch(node.httpUrl(MASTER));
      return answer.status === 200 && answer.text();
    });
    const [variant] = (HLS.parse(master) as HLS.types.MasterPlaylist).variants;
    return new Player(node, new URL(variant?.uri ?? '', `http://node${MASTER}`).pathname);
  }

  /** Loads the playlist, and what is new in it. @returns the status of the playlist */
  async load(): Promise<number> {
    const answer = await fetch(this.#node.httpUrl(this.list));
    if (answer.status !== 200) return answer.status;
    for (const { uri, mediaSequenceNumber: msn, discontinuity } of (
      HLS.parse(await answer.text()) as HLS.types.MediaPlaylist
    ).segments) {
      if (discontinuity) this.breaks.add(msn);
      if (this.segments.has(msn)) continue;
      const segment = await fetch(this.#node.httpUrl(new URL(uri, `http://node${this.list}`).pathname));
      if (segment.status === 200) this.segments.set(msn, Buffer.from(await segment.arrayBuffer()));
    }
    return 200;
  }

  until(what: string, condition: () => boolean): Promise<true> {
    return until(what, async () => (await this.load()) === 200 && condition());
  }
}

test('played from every node alike; the process that has the stream is killed, and players go on behind a discontinuity', async (t) => {
  const redis = await usedRedis(t);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, { hls: CONFIG })))) as [
    Kiln,
    Kiln,
    Kiln,
  ];
  await publish(t, a);
  const players = await Promise.all([b, c].map((node) => Player.start(node)));
  const [player, other] = players as [Player, Player];
  t.is(other.list.slice(other.list.lastIndexOf('/')), player.list.slice(player.list.lastIndexOf('/')));
  const common = () => [...player.segments.keys()].filter((msn) => other.segments.has(msn));
  await until('both have three segments', async () => {
    await Promise.all(players.map((one) => one.load()));
    return common().length >= 3;
  });
  for (const msn of common()) t.true(player.segments.get(msn)?.equals(other.segments.get(msn) as Buffer), `${msn}`);

  a.signal('SIGKILL');
  await a.exited();
  t.is(await player.load(), 200, 'what is known is told while nobody has the stream');
  const last = Math.max(...player.segments.keys());
  const known = player.segments.size;
  await publish(t, c);
  for (const one of players)
    await one.until('it goes on', () => [...one.segments.keys()].filter((msn) => msn > last).length >= 2);
  const [first = Infinity] = [...player.breaks].filter((msn) => msn > 0).sort((one, another) => one - another);
  t.true(first > last - 1, `behind ${last} the discontinuity is at ${first}`);
  t.true(player.segments.size > known);
  const numbers = [...player.segments.keys()].sort((one, another) => one - another);
  const parts = [numbers.filter((msn) => msn < first), numbers.filter((msn) => msn >= first)];
  for (const part of parts) {
    t.true(part.length >= 2);
    t.is(await decode(Buffer.concat(part.map((msn) => player.segments.get(msn) as Buffer))), '');
  }
  for (const [msn, segment] of other.segments)
    if (msn >= first && player.segments.has(msn)) t.true(player.segments.get(msn)?.equals(segment), `${msn}`);
});
