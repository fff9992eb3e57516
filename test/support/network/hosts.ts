import { execFileSync } from 'node:child_process';
import type { ExecutionContext } from 'ava';

/** A host of its own: programs that are started by its command are on it. */
export interface Host {
  readonly address: string;
  /** What stands before a program and its arguments. */
  readonly command: readonly string[];
}

const SUBNETS = 250;
const ATTEMPTS = 20;
/** A hardware address that no host has. */
const NOBODY = '02:00:00:00:00:99';

/**
 * Hosts on one network, made of network namespaces. One that is cut off is as one that has died: what is sent to it is
 * dropped, nothing is refused, and no connection ends.
 */
export class Hosts {
  readonly #name: string;
  /** This machine, as the others reach it. */
  readonly here: Host;
  readonly all: readonly Host[];

  private constructor(subnet: number, count: number) {
    this.#name = `kiln${subnet}`;
    const address = (host: number): string => `10.213.${subnet}.${host}`;
    this.here = { address: address(1), command: [] };
    this.all = Array.from({ length: count }, (_, n) => ({
      address: address(n + 2),
      command: ['ip', 'netns', 'exec', `${this.#name}-${n}`],
    }));
  }

  /** Whether this user may make any. */
  static get possible(): boolean {
    try {
      execFileSync('unshare', ['--net', 'ip', 'link', 'add', 'kiln', 'type', 'bridge'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  }

  /** They are gone after the test, with what is left on them. */
  static open(t: Pick<ExecutionContext, 'teardown'>, count: number): Hosts {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const hosts = new Hosts(Math.floor(Math.random() * SUBNETS), count);
      // whoever has made the bridge has the subnet
      if (!hosts.#reserve()) continue;
      const end = (): void => hosts.#close();
      process.once('exit', end);
      t.teardown(() => {
        process.off('exit', end);
        end();
      });
      hosts.#connect();
      return hosts;
    }
    throw new Error('no subnet is free');
  }

  /** Nothing reaches it any more, and nothing comes from it. */
  cut(host: Host): void {
    ip('link', 'set', this.#link(host), 'down');
  }

  /** Nothing that this machine sends to it arrives any more. */
  deafen(host: Host): void {
    ip('neigh', 'replace', host.address, 'lladdr', NOBODY, 'dev', this.#name, 'nud', 'permanent');
  }

  heal(host: Host): void {
    ip('link', 'set', this.#link(host), 'up');
  }

  #reserve(): boolean {
    try {
      ip('link', 'add', this.#name, 'type', 'bridge');
      return true;
    } catch {
      return false;
    }
  }

  #connect(): void {
    ip('addr', 'add', `${this.here.address}/24`, 'dev', this.#name);
    ip('link', 'set', this.#name, 'up');
    for (const [n, host] of this.all.entries()) {
      const space = `${this.#name}-${n}`;
      ip('netns', 'add', space);
      ip('link', 'add', this.#link(host), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space);
      ip('link', 'set', this.#link(host), 'master', this.#name, 'up');
      ip('-n', space, 'addr', 'add', `${host.address}/24`, 'dev', 'eth0');
      ip('-n', space, 'link', 'set', 'eth0', 'up');
      ip('-n', space, 'link', 'set', 'lo', 'up');
    }
  }

  #link(host: Host): string {
    return `${this.#name}v${this.all.indexOf(host)}`;
  }

  /** The links go at once; a namespace goes with its last process. */
  #close(): void {
    const undone = (...args: string[]): void => {
      try {
        ip(...args);
      } catch {
        // it was not made
      }
    };
    for (const [n, host] of this.all.entries()) {
      undone('link', 'del', this.#link(host));
      undone('netns', 'del', `${this.#name}-${n}`);
    }
    undone('link', 'del', this.#name);
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
