import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { Program } from '../media/ffmpeg.ts';
import { freePorts } from '../network/ports.ts';
import { until } from '../time/until.ts';

const START = fileURLToPath(new URL('../../../deploy/coturn/start', import.meta.url));

export interface TurnOptions {
  readonly secret: string;
  /** Addresses that may be reached through it. */
  readonly peers: string;
  /** Where it listens and relays from. */
  readonly address?: string;
}

/** coturn as the deployment runs it, on a free port of loopback; ends with the test. */
export class TurnServer {
  readonly port: number;
  readonly #program: Program;

  static async start(
    t: Pick<ExecutionContext, 'teardown'>,
    { secret, peers, address = '127.0.0.1' }: TurnOptions,
  ): Promise<TurnServer> {
    const [port, first] = freePorts(2) as [number, number];
    // relay ports are tried until one is free
    const env = {
      ...process.env,
      KILN_TURN_SECRET: secret,
      KILN_TURN_PEERS: peers,
      KILN_TURN_ADDRESS: address,
      KILN_TURN_PORT: String(port),
      KILN_TURN_RELAY_PORTS: `${first}-${first + 200}`,
    };
    // its log is on standard output
    const program = new Program('sh', ['-c', 'exec "$0" "$@" >&2', START, '--allow-loopback-peers', '--verbose'], env);
    t.teardown(() => program.stop());
    const server = new TurnServer(port, program);
    await until('the relay listens', () => {
      if (!program.running) throw new Error(`the relay ended: ${program.stderr}`);
      return /Total General servers/.test(program.stderr);
    });
    return server;
  }

  private constructor(port: number, program: Program) {
    this.port = port;
    this.#program = program;
  }

  get log(): string {
    return this.#program.stderr;
  }
}
