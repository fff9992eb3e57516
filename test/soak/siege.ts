import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kiln } from '../support/server/kiln.ts';
import { parseChunklist } from '../support/load/llhls-player.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { findStamp, monotonic } from '../support/load/stamp.ts';
import { openFiles } from '../support/load/usage.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { until } from '../support/time/until.ts';
import { issue } from '../support/network/x509.ts';
import { freePorts } from '../support/network/ports.ts';
import { ATTACKS, MPEGTS_SILENCE_MS, type Attack, type Besieged } from './attacks.ts';
import type { LivePaths } from './http-attacks.ts';
import { Random } from './random.ts';

/**
 * A server to besiege, with every way in: the windows of the sample configuration; WebRTC sessions that nobody comes to end
 * sooner than by default.
 * @param folder for its certificate
 */
export async function startBesieged(folder: string): Promise<Besieged> {
  const { cert, key } = issue('localhost');
  const [certPath, keyPath] = ['besieged.crt', 'besieged.key'].map((name) => join(folder, name)) as [string, string];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  const mpegts = freePorts(MPEGTS_PORTS);
  const list = mpegts.map((port) => `${port}/udp`).join(',');
  const kiln = await Kiln.start({
    llhls: '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>',
    hls: '<SegmentDuration>2</SegmentDuration><SegmentCount>5</SegmentCount>',
    webrtc: '<Timeout>3000</Timeout>',
    whip: true,
    rtmpPlay: true,
    ovt: true,
    srt: { provider: SRT_SILENCE },
    tls: { certPath, keyPath },
    bindProviders: `<MPEGTS><Port>${list}</Port></MPEGTS>`,
    providers: `<RTSPPull/><MPEGTS><PacketSilenceTimeoutMs>${MPEGTS_SILENCE_MS}</PacketSilenceTimeoutMs><PacketReordering>true</PacketReordering>
      <StreamMap><Stream><Name>ts_\${Port}</Name><Port>${list}</Port></Stream></StreamMap></MPEGTS>`,
  });
  return { kiln, mpegts };
}

/** A peer may tell libsrt of a round trip so long that it waits for hours for a sign of life. */
const SRT_SILENCE = '<PacketSilenceTimeoutMs>3000</PacketSilenceTimeoutMs>';
const CONCURRENT = 24;
/** Each has one sender at a time. */
const MPEGTS_PORTS = CONCURRENT;
/** The newest part may be this old, in milliseconds: two parts, and a loaded machine. */
const FRESH_MS = 5000;
const ERROR_LEVELS = ['error', 'fatal'];
/** Files that may be open beyond those of a server at rest: connections of the checks themselves. */
const SPARE_FILES = 8;
/** Pipes and ports of a media worker, which starts when peers need it, in both processes. */
const FILES_OF_MEDIA_WORKER = 32;
/** Longer than any time that the server gives a client to say something. */
const SETTLE_MS = 60_000;
/** Newest files of the live stream that attacks ask for. */
const KNOWN_FILES = 30;

/** The state of a server between attacks. */
export interface Health {
  readonly openFiles: number;
  /** Lines of the log at level error or above so far. */
  readonly errors: readonly string[];
}

/** Attacks a server that has a stream `live`, and checks that it serves on. All is decided by the seed. */
export class Siege {
  readonly #besieged: Besieged;
  readonly #kiln: Kiln;
  readonly #seed: number;
  readonly #kinds: readonly Attack[];
  /** Those of media workers left out. */
  readonly #filesAtRest: number;
  #live: LivePaths = [];
  #attacks = 0;
  #probes = 0;

  /** @param attacks those that may come; all of them unless given */
  constructor(besieged: Besieged, seed: number, attacks: readonly Attack[] = Object.values(ATTACKS)) {
    const { kiln } = besieged;
    this.#besieged = besieged;
    this.#kiln = kiln;
    this.#seed = seed;
    this.#kinds = attacks;
    this.#filesAtRest = openFiles(kiln.pid) - filesOfMediaWorkers(kiln);
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
    await until('sessions are let go of', async () => (await this.#sessions()) === 0, SETTLE_MS);
    const letGo = () => openFiles(kiln.pid) <= this.#filesAtRest + filesOfMediaWorkers(kiln) + SPARE_FILES;
    await until('connections are let go of', letGo, SETTLE_MS);
    return {
      openFiles: openFiles(kiln.pid),
      errors: errorLines(kiln.log),
    };
  }

  /** Of clients that have no file here: viewers of WebRTC, and callers of SRT, of which libsrt plays the rest when they have gone. */
  async #sessions(): Promise<number> {
    type Counted = { readonly connections: Readonly<Record<string, number>> };
    const { body } = await this.#kiln.api<Record<'providers' | 'publishers', Counted>>(
      '/v2/stats/current/vhosts/default',
    );
    const { providers, publishers } = body.response;
    return [publishers.connections.webrtc, publishers.connections.srt, providers.connections.srt].reduce<number>(
      (sum, count = NaN) => sum + count,
      0,
    );
  }

  async #attack(index: number): Promise<void> {
    const random = new Random(this.#seed * 1_000_003 + index);
    const total = this.#kinds.reduce((sum, { weight }) => sum + weight, 0);
    let rest = random.below(1000 * total) / 1000;
    const attack = this.#kinds.find(({ weight }) => (rest -= weight) < 0) ?? this.#kinds[0];
    await attack?.run({ ...this.#besieged, live: this.#live }, random);
  }

  /** A player that comes now gets a part of the last seconds. */
  async #checkPlayback(): Promise<void> {
    const master = this.#kiln.httpUrl('/app/live/llhls.m3u8');
    const urls = urlsOf(await until('the master playlist', () => text(master)), master);
    const picture = urls.at(-1) ?? '';
    const list = await until('a part of the last seconds', async () => {
      const current = (await text(picture)) ?? '';
      const part = new URL(parseChunklist(current).parts.at(-1) ?? '', picture).href;
      const stamp = findStamp(Buffer.from(await (await fetch(part)).arrayBuffer()));
      return stamp !== undefined && monotonic() - stamp.time < FRESH_MS && current;
    });
    this.#live = [
      this.#kiln.httpUrl('/app/live/ts:playlist.m3u8'),
      ...urls,
      ...urlsOf(list, picture).slice(-KNOWN_FILES),
    ].map((url) => new URL(url).pathname);
  }
}

function filesOfMediaWorkers({ log }: Kiln): number {
  return log.split('"worker.started"').slice(1).length * FILES_OF_MEDIA_WORKER;
}

function urlsOf(playlist: string, base: string): string[] {
  return urisOf(playlist, base);
}

async function text(url: string): Promise<string | undefined> {
  const answer = await fetch(url);
  const body = await answer.text();
  return answer.status === 200 ? body : undefined;
}

/** Lines of a log that tell of a failure of the server itself, and what is no line of a log at all. */
function errorLines(log: string): string[] {
  // of the last one there may be more to come
  return log
    .split('\n')
    .slice(0, -1)
    .filter((line) => {
      if (line === '') return false;
      try {
        const { level, err } = JSON.parse(line) as { level: string; err?: { code?: string } };
        // what is pulled from a hostile origin is not to be had
        return ERROR_LEVELS.includes(level) && err?.code !== 'pullFailed';
      } catch {
        return true;
      }
    });
}
