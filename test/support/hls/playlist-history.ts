import { setTimeout as delay } from 'node:timers/promises';
import HLS from 'hls-parser';
import { inPlace } from './playlist-uris.ts';
import { checkMasterPlaylist, childrenOf } from '../playlist-rules/master-rules.ts';
import { checkDelta, checkReloads } from '../playlist-rules/reload-rules.ts';
import { checkRenditions } from '../playlist-rules/rendition-rules.ts';
import { faults, type Finding, type Rule } from '../playlist-rules/rules.ts';

/** Less than a part. */
const BETWEEN_LOOKS_MS = 200;

/** Fetches a playlist; undefined when it is not there. */
type Fetch = (url: string) => Promise<string | undefined>;

/** What one player got of one media playlist. */
interface Child {
  readonly uri: string;
  readonly url: string;
  readonly full: string[];
  /** When the last update was had, in milliseconds since the epoch. */
  hadAt: number;
  /** As a player that asks for delta updates where it can. */
  readonly updates: string[];
  /** As a player that knows complete segments only. */
  readonly legacy: string[];
}

/** Everything that players get of the playlists of a stream, for the judgement of the whole. */
export class PlaylistHistory {
  readonly #fetch: Fetch;
  readonly #master: string;
  readonly #masters = new Set<string>();
  readonly #children = new Map<string, Child>();
  readonly #deltas: Finding[] = [];

  /** @param master URL of the multivariant playlist; a path where `fetch` takes one */
  constructor(fetch: Fetch, master: string) {
    this.#fetch = fetch;
    this.#master = master;
  }

  /** Fetches everything as it is now. */
  async look(): Promise<void> {
    const master = await this.#fetch(this.#master);
    if (master === undefined) return;
    this.#masters.add(master);
    for (const { uri } of childrenOf(master)) {
      // the session differs with each multivariant playlist
      const name = nameOf(uri);
      const url = inPlace(uri, this.#master);
      if (!this.#children.has(name))
        this.#children.set(name, { uri, url, full: [], hadAt: 0, updates: [], legacy: [] });
    }
    for (const child of this.#children.values()) await this.#reload(child);
  }

  async #reload(child: Child): Promise<void> {
    const { url, full, updates, legacy } = child;
    const mark = url.includes('?') ? '&' : '?';
    const before = full.at(-1);
    const now = await this.#fetch(url);
    if (now === undefined) return;
    full.push(now);
    if (!now.includes('EXT-X-SERVER-CONTROL')) return;
    const delta = await this.#fetch(`${url}${mark}_HLS_skip=YES`);
    const old = await this.#fetch(`${url}${mark}_HLS_legacy=YES`);
    const isSame = (await this.#fetch(url)) === now;
    // a player does not ask for an update of what is older than half the skip boundary (6.3.7)
    const isRecent = Date.now() - child.hadAt < (skipBoundaryOf(now) / 2) * 1000;
    // one that got no update, because the server went away, asks for the whole next
    child.hadAt = delta === undefined ? 0 : Date.now();
    if (delta !== undefined) updates.push(before === undefined || !isRecent ? now : delta);
    if (old !== undefined) legacy.push(old);
    if (isSame && isRecent && before !== undefined && delta !== undefined)
      this.#deltas.push(...checkDelta(before, delta, now));
  }

  /** Looks again and again until every media playlist has ended. @throws Error of `fetch` */
  async watch(): Promise<void> {
    while (!this.#ended) {
      await delay(BETWEEN_LOOKS_MS);
      await this.look();
    }
  }

  /** Whether every media playlist has ended. */
  get #ended(): boolean {
    const children = [...this.#children.values()];
    return children.length > 0 && children.every(({ full }) => full.at(-1)?.includes('#EXT-X-ENDLIST') === true);
  }

  /** How many answers differ from the one before them. */
  get size(): number {
    return [...this.#children.values()].reduce((sum, { full }) => sum + new Set(full).size, 0);
  }

  /** Broken MUSTs, with the playlist. @param except rules that are broken on purpose */
  broken(except: readonly Rule[] = []): string[] {
    const children = [...this.#children.values()];
    const judged = children.map((child) => ({ child, ...checkReloads(child.full) }));
    const others = children.flatMap(({ updates, legacy }) => [updates, legacy].map((texts) => checkReloads(texts)));
    const renditions = judged.map(({ child: { uri }, playlists }) => ({ uri, playlists }));
    const masters = [...this.#masters];
    return [
      ...masters.flatMap((master) => faults(checkMasterPlaylist(master), except)),
      ...judged.flatMap(({ child, findings }) => faults(findings, except).map((one) => `${nameOf(child.uri)}: ${one}`)),
      ...faults([...this.#deltas, ...others.flatMap(({ findings }) => findings)], except),
      ...faults(checkRenditions(masters.at(-1) ?? '', renditions), except),
      ...new Set([...masters, ...children.flatMap(({ full, legacy }) => [...full, ...legacy])].flatMap(secondOpinion)),
    ];
  }
}

/** Seconds from the end of a playlist beyond which an update leaves segments out; 0 where there are no updates. */
function skipBoundaryOf(text: string): number {
  return Number(/CAN-SKIP-UNTIL=([\d.]+)/.exec(text)?.[1] ?? 0);
}

/** What hls-parser objects to. */
function secondOpinion(text: string): string[] {
  HLS.setOptions({ strictMode: true });
  try {
    HLS.parse(text);
    return [];
  } catch (error) {
    const { message } = error as Error;
    // it counts segments there, one that only a hint names too, not seconds: see `part-old`
    return message.includes('Remove EXT-X-PART tags') ? [] : [`hls-parser: ${message}`];
  }
}

function nameOf(uri: string): string {
  return /[^/?]+(?=\?|$)/.exec(uri)?.[0] ?? uri;
}
