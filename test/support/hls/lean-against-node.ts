import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createHttpPort } from '../../../src/web/http-port.ts';
import { Random } from '../../soak/random.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../media/packets.ts';
import { openLlhls } from './llhls.ts';
import { urisOf } from './playlist-uris.ts';
import { connectionOf, fateOf, type Fate, type Pieces } from './raw-requests.ts';

const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const VIDEO = videoTrack();
const AUDIO = audioTrack();
const MAX_PER_CONNECTION = 5;
const AT_ONCE = 16;
const CONTINUE = 'HTTP/1.1 100 Continue\r\n';
const REFUSAL = /HTTP\/1\.1 4\d\d [^\r]+\r\nServer: Kiln\r\nConnection: close\r\n.*$/s;
const TURNS = [8, 100, 2000];

/**
 * Sends the same bytes to a port that reads plain requests itself and to one that leaves all to `node:http` and the framework, and
 * compares what they answer, byte by byte but for the time, and what becomes of the connections. Where bytes that end a connection come
 * in one turn with requests before them, `node:http` may drop answers to those, or answer in the place of one, and it says 100 as soon as
 * it is asked, within other answers too: then both are also given one request after the other.
 */
export async function compareWithNode(t: ExecutionContext, seed: number, requests: number): Promise<void> {
  const server = await openLlhls(t, {
    llhls: { ...LLHLS, crossDomains: { url: ['*.example'], header: [{ key: 'X-Own', value: 'yes' }] } },
    vhost: { host: { names: ['localhost', '[::1]'] } },
  });
  const listen = async (isLean: boolean): Promise<number> => {
    const port = createHttpPort({ log: pino({ level: 'silent' }) });
    t.teardown(() => port.close(0));
    for (const { routes } of server.publishers) await port.app.register(routes);
    if (!isLean) port.app.interceptors?.splice(0);
    return await port.listen(['127.0.0.1'], 0);
  };
  const [lean, node] = [await listen(true), await listen(false)];
  const { output } = server.goLive([VIDEO, AUDIO]);
  const span = { from: 0, to: 9, gop: 60 };
  for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
  const master = '/app/stream/llhls.m3u8';
  const lists = urisOf((await server.app.inject(master)).body, master);
  const paths = [...lists, ...lists];
  for (const list of lists) paths.push(...urisOf((await server.app.inject(list)).body, list));
  const [own = ''] = paths;
  paths.push('/app/other/llhls.m3u8', '/', own.replace('stream', 'none'), `${own}?_HLS_msn=x`, `${own}?a=b`);
  // a request that waits would hold up those behind it
  for (const publisher of server.publishers) publisher.live(server.application, 'stream')?.stream.conclude(true);

  const both = (pieces: Pieces, turns: number): Promise<[Fate, Fate]> =>
    Promise.all([fateOf(lean, pieces, turns), fateOf(node, pieces, turns)]);
  const random = new Random(seed);
  const statuses = new Set<string>();
  let sent = 0;
  const next = async (): Promise<void> => {
    while (sent < requests) {
      const count = 1 + random.below(MAX_PER_CONNECTION);
      sent += count;
      const pieces = connectionOf(random, count, paths);
      for (const turns of TURNS) {
        const [ours, theirs] = await both(pieces, turns);
        for (const [, status = ''] of ours.text.matchAll(/HTTP\/1\.1 (\d+) /g)) statuses.add(status);
        if (isEqual(ours, theirs)) break;
        const whole = await both(oneByOne(pieces), turns);
        const isCut = ours.isEnded && whole[0].text.startsWith(ours.text.replace(REFUSAL, ''));
        if (isEqual(...whole) && (isCut || ours.text.includes(CONTINUE))) break;
        // a machine that is busy may take longer
        if (turns === TURNS.at(-1))
          t.deepEqual(ours, theirs, JSON.stringify(pieces.map((piece) => piece.toString('latin1'))));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  for (const status of ['200', '206', '400', '401', '404', '416']) t.true(statuses.has(status), status);
}

function isEqual(one: Fate, other: Fate): boolean {
  return one.text === other.text && one.isEnded === other.isEnded;
}

/** The same bytes in pieces that end where a head does. */
function oneByOne(pieces: Pieces): Pieces {
  const text = Buffer.concat(pieces).toString('latin1');
  return text.split(/(?<=\r\n\r\n)/).map((piece) => Buffer.from(piece, 'latin1'));
}
