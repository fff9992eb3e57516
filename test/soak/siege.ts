import type { Kiln, KilnOptions } from '../support/kiln.ts';
import { parseChunklist, urisOf } from '../support/load/llhls-player.ts';
import { findStamp, monotonic } from '../support/load/stamp.ts';
import { openFiles, residentBytesOfEach } from '../support/load/usage.ts';
import { RtmpClient } from '../support/rtmp-client.ts';
import { until } from '../support/until.ts';
import { datagrams } from './datagrams.ts';
import { deliver, deliverDatagrams } from './deliver.ts';
import { httpAttack, type LivePaths } from './http-attacks.ts';
import { Random } from './random.ts';
import { rtmpAttack } from './rtmp-attacks.ts';
import { websocketAttack } from './websocket-attacks.ts';

/**
 * Of a server under siege: the windows of the sample configuration; WebRTC sessions that nobody comes to end
 * sooner than by default.
 */
export const BESIEGED: KilnOptions = {
  llhls: '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>',
  webrtc: '<Timeout>3000</Timeout>',
};

const CONCURRENT = 24;
/** The newest part may be this old, in milliseconds: two parts, and a loaded machine. */
const FRESH_MS = 5000;
const ERROR_LEVEL = 50;
/** Files that may be open beyond those of a server at rest: connections of the checks themselves. */
const SPARE_FILES = 8;
/** Longer than any time that the server gives a client to say something. */
const SETTLE_MS = 60_000;
/** Newest files of the live stream that attacks ask for. */
const KNOWN_FILES = 30;

/** The state of a server between attacks. */
export interface Health {
  /** Of the server, then of each of its media workers. */
  readonly residentBytes: readonly number[];
  readonly openFiles: number;
  /** Lines of the log at level error or above so far. */
  readonly errors: readonly string[];
}

/** Attacks a server that has a stream `live`, and checks that it serves on. All is decided by the seed. */
export class Siege {
  readonly #kiln: Kiln;
  readonly #seed: number;
  readonly #filesAtRest: number;
  #live: LivePaths = [];
  #attacks = 0;
  #probes = 0;

  constructor(kiln: Kiln, seed: number) {
    this.#kiln = kiln;
    this.#seed = seed;
    this.#filesAtRest = openFiles(kiln.pid);
  }

  /** Runs so many attacks, some at a time. */
  async attack(count: number): Promise<void> {
    const end = this.#attacks + count;
    const one = async () => {
      while (this.#attacks < end && this.#kiln.running) await this.#attack(this.#attacks++);
    };
    await Promise.all(Array.from({ length: CONCURRENT }, one));
  }

  /**
   * Checks that the API, LL-HLS and RTMP serve, and that connections have been let go of.
   * @throws Error naming what does not
   */
  async check(): Promise<Health> {
    const kiln = this.#kiln;
    if (!kiln.running) throw new Error(`the server ended: ${kiln.log.slice(-2000)}`);
    const { status, body } = await kiln.api<string[]>('/v1/vhosts/default/apps/app/streams');
    if (status !== 200 || !body.response.includes('live')) {
      throw new Error(`the API answers ${status}: ${JSON.stringify(body)}`);
    }
    await this.#checkPlayback();
    const probe = await RtmpClient.publish(`probe${this.#probes++}`, { port: kiln.ports.rtmp });
    probe.close();
    await until('WebRTC sessions are let go of', async () => (await this.#viewers()) === 0, SETTLE_MS);
    await until('connections are let go of', () => openFiles(kiln.pid) <= this.#filesAtRest + SPARE_FILES, SETTLE_MS);
    return {
      residentBytes: residentBytesOfEach(kiln.pid),
      openFiles: openFiles(kiln.pid),
      errors: errorLines(kiln.log),
    };
  }

  async #viewers(): Promise<number> {
    const { body } = await this.#kiln.api<{ connections: { webrtc: number } }>('/v1/stats/current');
    return body.response.connections.webrtc;
  }

  async #attack(index: number): Promise<void> {
    const random = new Random(this.#seed * 1_000_003 + index);
    const { rtmp, http, ice } = this.#kiln.ports;
    switch (random.below(10)) {
      case 0:
        return deliver(http, websocketAttack(random), random);
      case 1:
        if (random.chance(0.3)) return deliverDatagrams(random.pick(ice), datagrams(random));
        return deliver(http, random.bytes(random.below(400)), random);
      case 2:
      case 3:
      case 4:
      case 5: {
        const { port, bytes } = httpAttack(random, this.#live);
        return deliver(this.#kiln.ports[port], bytes, random);
      }
      default:
        return deliver(rtmp, rtmpAttack(random), random);
    }
  }

  /** A player that comes now gets a part of the last seconds. */
  async #checkPlayback(): Promise<void> {
    const master = this.#kiln.httpUrl('/app/live/llhls.m3u8');
    const urls = urlsOf(await until('the master playlist', () => text(master)), master);
    const picture = urls.at(-1) ?? '';
    const list = (await text(picture)) ?? '';
    const { parts } = parseChunklist(list);
    const part = new URL(parts.at(-1) ?? '', picture).href;
    const stamp = findStamp(Buffer.from(await (await fetch(part)).arrayBuffer()));
    if (stamp === undefined || monotonic() - stamp.time > FRESH_MS) {
      throw new Error(`${part} is not of the last seconds`);
    }
    this.#live = [...urls, ...urlsOf(list, picture).slice(-KNOWN_FILES)].map((url) => new URL(url).pathname);
  }
}

function urlsOf(playlist: string, base: string): string[] {
  return urisOf(playlist).map((uri) => new URL(uri, base).href);
}

async function text(url: string): Promise<string | undefined> {
  const answer = await fetch(url);
  const body = await answer.text();
  return answer.status === 200 ? body : undefined;
}

/** Lines of a log that tell of a failure of the server itself, and what is no line of a log at all. */
function errorLines(log: string): string[] {
  return log.split('\n').filter((line) => {
    if (line === '') return false;
    try {
      return (JSON.parse(line) as { level: number }).level >= ERROR_LEVEL;
    } catch {
      return true;
    }
  });
}
