import { setTimeout as delay } from 'node:timers/promises';
import { launchBrowser } from '../support/hls/browser.ts';
import { BUSY_STREAMS, startBusyNodes, visit, withoutData } from '../support/cluster/busy-nodes.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import { worstShare } from '../support/load/frame-log.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import type { WebrtcCommands } from '../support/load/programs/watch-webrtc.ts';
import { median, percent } from '../support/load/statistics.ts';
import { cpuSeconds, residentBytes } from '../support/load/usage.ts';
import { Prometheus, SCRAPE_TOKEN, shippedSettings } from '../support/api/prometheus.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { until } from '../support/time/until.ts';

/** The streams of this load, besides those of `startBusyNodes`, which have encoders. */
const APP = 'load';
const LLHLS_XML =
  '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>';
const APPLICATION =
  `<Application><Name>${APP}</Name><Type>live</Type><Providers><RTMP/></Providers>` +
  `<Publishers><LLHLS>${LLHLS_XML}</LLHLS><WebRTC/><Thumbnail/><FILE/><Push/></Publishers></Application>`;
const STREAMS_EACH = 50;
const KBIT = 200;
/** Streams of each node that are watched over a protocol, and viewers of each of them at each node. */
const LLHLS = { streams: 6, viewers: 5 };
const WEBRTC = { streams: 2, viewers: 10 };
const SCRAPE = '5s';
const TWO_SCRAPES_MS = 11_000;
const WARM_UP_MS = 60_000;
const WINDOW_MS = 15_000;
/** What is shown in the console, one after the other, each behind a time in which it is closed. */
const VIEWS = ['', 'streams', `streams/default/${APP}/s0-0`, 'channels', 'tasks', 'applications', 'nodes', 'events'];
/** Consoles that are played at once. */
const CONSOLES = 20;
const AUTHORIZATION = `Basic ${Buffer.from(SCRAPE_TOKEN).toString('base64')}`;
const LOOKS_MS = 300_000;
const LOG_LINES = 40;
/** What was sent when counting ends needs so long to be at LL-HLS players on a loaded machine. */
const TAIL_MS = 8000;
const WANTED_SHARE = 0.999;
const GROWTH = 1.15;
/** Of a core, for an open console. */
const CONSOLE_SHARE = 0.01;
const MIB = 1024 * 1024;

/** A process of each kind for each node, so that what one does is in nobody's way. */
interface Load {
  readonly publishers: Program<PublishCommands>;
  readonly llhls: Program<LlhlsCommands>;
  readonly webrtc: Program<WebrtcCommands>;
}

/**
 * A hundred streams and two hundred viewers on two nodes that Prometheus scrapes, with a console that is closed and open
 * in turn: whether viewers get their frames, dashboards their data, and what an open console costs.
 * @param clip file to encode into
 * @returns whether all of it stayed within its limits
 */
export async function operations(clip: string, minutes: number, print: (text: string) => void): Promise<boolean> {
  await encodeClip(clip, { size: '320x180', kbit: KBIT });
  const end = new Teardown();
  try {
    const { a, b } = await startBusyNodes(end, APPLICATION);
    const nodes = [a, b];
    const prometheus = await Prometheus.start(end, shippedSettings(nodes, SCRAPE));
    const loads = nodes.map((): Load => {
      const load: Load = {
        publishers: new Program('publish.ts'),
        llhls: new Program('watch-llhls.ts'),
        webrtc: new Program('watch-webrtc.ts'),
      };
      end.teardown(() => Promise.all(Object.values(load).map((program: Load[keyof Load]) => program.stop())));
      return load;
    });
    await Promise.all(
      loads.map(({ publishers }, at) =>
        publishers.ask('start', { port: (nodes[at] as Kiln).ports.rtmp, clip, streams: names(at), app: APP }),
      ),
    );
    await until(
      'all streams are there',
      async () => (await streamCount(a)) === nodes.length * STREAMS_EACH + BUSY_STREAMS,
    );
    await Promise.all(loads.map((load, at) => watch(load, nodes[at] as Kiln)));
    await delay(WARM_UP_MS);

    const before = nodes.map(({ pid }) => residentBytes(pid));
    const costs = new ConsoleCosts(nodes);
    await costs.learn();
    const begun = performance.now();
    const empty = new Set<string>();
    for (let looks = 1; performance.now() - begun < minutes * 60_000;) {
      for (const view of VIEWS) await costs.measure(view);
      await Promise.all(nodes.map(visit));
      await delay(TWO_SCRAPES_MS);
      for (const what of await withoutData(prometheus)) empty.add(what);
      if (performance.now() - begun < looks * LOOKS_MS) continue;
      looks++;
      const figures = nodes.map(({ pid }) => `${(residentBytes(pid) / MIB).toFixed(0)} MiB`).join(' and ');
      print(`${((performance.now() - begun) / 60_000).toFixed(0).padStart(4)} min: ${figures}; ${costs.text}`);
      for (const { llhls, webrtc } of loads)
        await Promise.all([llhls.ask('reset', undefined), webrtc.ask('reset', undefined)]);
    }

    const sent = await Promise.all(loads.map(({ publishers }) => publishers.ask('count', undefined)));
    await delay(TAIL_MS);
    const after = nodes.map(({ pid }) => residentBytes(pid));
    const lastFrame = Math.floor(Math.min(...sent.map(({ frames }) => frames)) / STREAMS_EACH) - 1;
    const seen = await Promise.all(
      loads.map(async ({ llhls, webrtc }) => ({
        llhls: await llhls.ask('report', { lastFrame }),
        webrtc: await webrtc.ask('report', { lastFrame }),
      })),
    );
    const shares = {
      llhls: worstShare(seen.flatMap(({ llhls }) => llhls.frames)),
      webrtc: worstShare(seen.flatMap(({ webrtc }) => webrtc.frames)),
    };
    const failures = seen.flatMap(({ llhls }) => llhls.failures);
    const gone = failures.length + seen.reduce((sum, { webrtc }) => sum + webrtc.failed, 0);
    const connected = sent.reduce((sum, one) => sum + one.connected, 0);
    const range = `[${Math.ceil(minutes)}m]`;
    const up = await prometheus.values(`min_over_time(up{job="kiln"}${range})`);
    const slowest = await prometheus.values(`max_over_time(scrape_duration_seconds{job="kiln"}${range})`);
    const growth = Math.max(...after.map((bytes, at) => bytes / (before[at] as number)));

    print(`${connected} publishers still there, ${gone} viewers gone`);
    for (const failure of failures.slice(0, 5)) print(`        ${failure}`);
    print(`frames at the worst viewer: LL-HLS ${percent(shares.llhls)}, WebRTC ${percent(shares.webrtc)}`);
    print(
      `scrapes: ${up.filter((value) => value === 1).length} of ${up.length} nodes never missed one, the slowest took ${slowest.map((s) => `${(s * 1000).toFixed(0)} ms`).join(' and ')}`,
    );
    print(`panels and alerts without data at some time: ${[...empty].join('; ') || 'none'}`);
    print(`memory: ${percent(growth)} of what it was after the start`);
    print(`console: ${costs.text}; ${costs.refused} calls failed`);
    const sound =
      connected === nodes.length * STREAMS_EACH &&
      gone === 0 &&
      Math.min(shares.llhls, shares.webrtc) >= WANTED_SHARE &&
      up.length === nodes.length &&
      Math.min(...up) === 1 &&
      empty.size === 0 &&
      growth <= GROWTH &&
      costs.refused === 0 &&
      costs.most <= CONSOLE_SHARE;
    if (!sound) for (const [at, { log }] of nodes.entries()) print(`log of node ${at}:\n${newest(log)}`);
    print(sound ? 'carried' : 'NOT carried');
    return sound;
  } finally {
    await end.run();
  }
}

/** What calls of the console cost the nodes. One console costs less than CPU time differs by itself: many are played. */
class ConsoleCosts {
  readonly #nodes: readonly Kiln[];
  /** Cores that one console costs all nodes together, by what it shows. */
  readonly #costs = new Map<string, number[]>();
  readonly #closed: number[] = [];
  /** What the console asks while it shows something. */
  readonly #calls = new Map<string, readonly string[]>();
  /** Calls that were not answered with success. */
  refused = 0;

  constructor(nodes: readonly Kiln[]) {
    this.#nodes = nodes;
  }

  /** Shows every view in a browser, and notes what each asks. */
  async learn(): Promise<void> {
    const browser = await launchBrowser();
    try {
      for (const view of VIEWS) {
        const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
        await page.goto(`http://127.0.0.1:${this.#nodes[0]?.ports.api}/console#/${view}`);
        await page.getByLabel('Access token').fill(SCRAPE_TOKEN);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.locator('#view h1').waitFor();
        const calls: string[] = [];
        page.on('request', (request) => calls.push(request.url()));
        await delay(WINDOW_MS);
        await page.close();
        this.#calls.set(view, calls);
      }
    } finally {
      await browser.close();
    }
  }

  /** Asks what many consoles would ask that show a view, and before it nothing, for a while each. */
  async measure(view: string): Promise<void> {
    const closed = await this.#cores(() => delay(WINDOW_MS));
    const calls = this.#calls.get(view) ?? [];
    const open = await this.#cores(async () => {
      const from = performance.now();
      for (let n = 0; n < calls.length * CONSOLES; n++) {
        await delay(from + (n * WINDOW_MS) / (calls.length * CONSOLES) - performance.now());
        const answer = await fetch(calls[n % calls.length] as string, { headers: { authorization: AUTHORIZATION } });
        if (!answer.ok) this.refused++;
        await answer.arrayBuffer();
      }
    });
    this.#closed.push(closed.cores);
    const each = ((open.cores * open.seconds - closed.cores * open.seconds) * 1000) / WINDOW_MS / CONSOLES;
    this.#costs.set(view, [...(this.#costs.get(view) ?? []), each]);
  }

  /** Cores that the most expensive view costs. */
  get most(): number {
    return Math.max(...[...this.#costs.values()].map(median));
  }

  get text(): string {
    const costs = [...this.#costs].map(([view, all]) => `${view || 'overview'} ${percent(median(all))}`);
    return `closed ${percent(median(this.#closed))} of a core, each that is open: ${costs.join(', ')}`;
  }

  /** What the nodes use meanwhile. */
  async #cores(work: () => Promise<void>): Promise<{ cores: number; seconds: number }> {
    const since = { cpu: this.#cpu(), at: performance.now() };
    await work();
    const seconds = (performance.now() - since.at) / 1000;
    return { cores: (this.#cpu() - since.cpu) / seconds, seconds };
  }

  #cpu(): number {
    return this.#nodes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  }
}

/** The newest lines of a log that tell of something wrong (pino's levels from 40 on). */
function newest(log: string): string {
  const lines = log.split('\n').filter((line) => /"level":(?:[4-6]0|"(?:warn|error|fatal)")/.test(line));
  return lines.slice(-LOG_LINES).join('\n');
}

/** Of the streams of a node. */
function names(node: number): string[] {
  return Array.from({ length: STREAMS_EACH }, (_, n) => `s${node}-${n}`);
}

async function streamCount(node: Kiln): Promise<number> {
  const { body } = await node.api<readonly unknown[]>('/v1/cluster/streams');
  return body.response.length;
}

/** The viewers at one node, of its own streams and of the other's. */
async function watch({ llhls, webrtc }: Load, node: Kiln): Promise<void> {
  const some = (count: number, from: number): string[] =>
    [0, 1].flatMap((owner) => names(owner).slice(from, from + count));
  for (const stream of some(LLHLS.streams, 0)) {
    const master = `/${APP}/${stream}/llhls.m3u8`;
    await llhls.ask('start', { port: node.ports.http, master, hints: true, count: LLHLS.viewers });
  }
  for (const stream of some(WEBRTC.streams, LLHLS.streams))
    await webrtc.ask('start', { url: node.httpUrl(`/${APP}/${stream}?direction=whep`), count: WEBRTC.viewers });
}
