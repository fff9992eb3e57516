import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostInUrl } from '../../src/lib/address.ts';
import { balancerConfig, balancerEnvironment } from './balancer.ts';
import type { ClusterPorts, NodePorts } from './ports.ts';
import { findProgram, Program } from './program.ts';

const ROOT = join(import.meta.dirname, '../..');
const START_AGAIN_MS = 10_000;

export interface LocalClusterOptions {
  /** Address of this machine for nodes and balancer. */
  readonly address: string;
  readonly ports: ClusterPorts;
  /** Whether a relay (TURN) runs, too. */
  readonly turn: boolean;
  /** Access token of the API. */
  readonly token: string;
  readonly say: (text: string) => void;
  /** Called when redis-server, haproxy or turnserver has ended: the cluster cannot go on. */
  readonly onBroken: () => void;
}

/** Redis, nodes, a balancer and perhaps a relay on this machine, with their files in a temporary folder. */
export class LocalCluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'kiln-cluster-'));
  readonly #options: LocalClusterOptions;
  readonly #secret = randomBytes(16).toString('hex');
  readonly #password = randomBytes(16).toString('hex');
  readonly #turnSecret = randomBytes(16).toString('hex');
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #nodes: Program[] = [];
  readonly #servers: Program[] = [];
  #closed: Promise<void> | undefined;

  constructor(options: LocalClusterOptions) {
    this.#options = options;
  }

  get pids(): readonly (number | undefined)[] {
    return this.#nodes.map(({ pid }) => pid);
  }

  /** @throws Error when a program is missing or does not start */
  async start(): Promise<void> {
    const { ports, address } = this.#options;
    const [redis, haproxy] = ['redis-server', 'haproxy'].map(findProgram) as [string, string];
    const redisConfig = join(this.folder, 'redis.conf');
    const lines = [
      `port ${ports.redis}`,
      'bind 127.0.0.1',
      `dir ${this.folder}`,
      'save ""',
      'maxmemory-policy noeviction',
      `requirepass ${this.#password}`,
    ];
    writeFileSync(redisConfig, lines.join('\n'), { mode: 0o600 });
    await this.#serve('redis-server', redis, [redisConfig]).ready(() => accepts(ports.redis));
    if (this.#options.turn) await this.#startRelay();
    await Promise.all(ports.nodes.map((_, index) => this.#startNode(index)));
    const balancer = join(this.folder, 'haproxy.cfg');
    writeFileSync(balancer, balancerConfig(readFileSync(join(ROOT, 'deploy/haproxy.cfg'), 'utf8'), ports.nodes.length));
    await this.#serve('haproxy', haproxy, ['-f', balancer], balancerEnvironment(address, ports)).ready(() =>
      isReady(`${this.#url(ports.balancer.http)}/readyz`),
    );
  }

  /** Ends everything in order and removes the files. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  /** Ends everything at once and removes the files. */
  kill(): void {
    for (const program of [...this.#nodes, ...this.#servers]) program.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #end(): Promise<void> {
    this.#timers.forEach(clearTimeout);
    await Promise.all(this.#nodes.map((node) => node.close()));
    for (const server of this.#servers.reverse()) await server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #serve(name: string, path: string, args: readonly string[], env?: Record<string, string>): Program {
    const { say, onBroken } = this.#options;
    const onEnd = (how: string): void => {
      say(`${name} has ended (${how})`);
      onBroken();
    };
    const program = new Program({
      name,
      path,
      args,
      env,
      log: join(this.folder, `${name}.log`),
      ending: 'SIGTERM',
      onEnd,
    });
    this.#servers.push(program);
    return program;
  }

  async #startRelay(): Promise<void> {
    const {
      address,
      ports: { turn },
    } = this.#options;
    findProgram('turnserver');
    const env = {
      KILN_TURN_SECRET: this.#turnSecret,
      KILN_TURN_PEERS: address,
      KILN_TURN_ADDRESS: address,
      KILN_TURN_PORT: String(turn),
    };
    await this.#serve('turnserver', join(ROOT, 'deploy/coturn/start'), ['--allow-loopback-peers'], env).ready(() =>
      accepts(turn, address),
    );
  }

  async #startNode(index: number): Promise<void> {
    const ports = this.#options.ports.nodes[index] as NodePorts;
    const name = `node-${index + 1}`;
    const node = new Program({
      name,
      path: join(ROOT, 'deploy/start'),
      args: ['--config', join(ROOT, 'config/cluster.xml')],
      env: this.#environment(name, ports),
      log: join(this.folder, `${name}.log`),
      ending: 'SIGINT',
      onEnd: (how) => this.#startAgain(name, node, how),
    });
    this.#nodes.push(node);
    await node.ready(() => isReady(`${this.#url(ports.api)}/readyz`));
  }

  /** Restarts a node as systemd or an orchestrator would, but slowly, so that the effect can be seen. */
  #startAgain(name: string, node: Program, how: string): void {
    this.#options.say(`${name} has ended (${how}) and is started again in ${START_AGAIN_MS / 1000} s`);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      node.restart();
      this.#options.say(`${name} is started again, as process ${node.pid}`);
    }, START_AGAIN_MS);
    this.#timers.add(timer);
  }

  #environment(name: string, { rtmp, http, ovt, srt, srtPlay, api, node, ice }: NodePorts): Record<string, string> {
    const { address, ports, token } = this.#options;
    return {
      KILN_ACCESS_TOKEN: token,
      KILN_CLUSTER_SECRET: this.#secret,
      KILN_REDIS_URL: `redis://127.0.0.1:${ports.redis}`,
      KILN_REDIS_PASSWORD: this.#password,
      KILN_NODE_ID: name,
      KILN_IP: address,
      KILN_ADVERTISE_ADDRESS: address,
      KILN_ICE_ADDRESS: address,
      KILN_TURN: `${hostInUrl(address)}:${ports.turn}`,
      KILN_TURN_SECRET: this.#options.turn ? this.#turnSecret : '',
      KILN_PROXY_NETWORKS: address,
      KILN_FORWARDED_NETWORKS: address,
      // the same port for all nodes would conflict
      KILN_METRICS_PORT: '',
      KILN_AGENT_CHECK_PORT: '',
      KILN_PUBLIC_URL: '',
      KILN_RTMP_PORT: String(rtmp),
      KILN_HTTP_PORT: String(http),
      KILN_OVT_PORT: String(ovt),
      KILN_SRT_PORT: String(srt),
      KILN_SRT_PLAY_PORT: String(srtPlay),
      KILN_API_PORT: String(api),
      KILN_NODE_PORT: String(node),
      KILN_ICE_PORTS: String(ice),
      KILN_STORAGE: join(this.folder, name),
    };
  }

  #url(port: number): string {
    return `http://${hostInUrl(this.#options.address)}:${port}`;
  }
}

function accepts(port: number, address = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, address, () => {
      socket.destroy();
      resolve(true);
    }).once('error', () => resolve(false));
  });
}

async function isReady(url: string): Promise<boolean> {
  return (await fetch(url).catch(() => undefined))?.status === 200;
}
