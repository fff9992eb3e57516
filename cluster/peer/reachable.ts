import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterRunning } from '../running-time.ts';

/**
 * Attempts, one after the other: a lost packet alone is not the end of a node, and a node that comes back is found.
 */
const ATTEMPTS = 8;

/**
 * Whether the host of a node accepts connections on its port, as it does even for a suspended process.
 * @param address `http://host:port` or `https://host:port`
 */
export async function isReachable(address: string, withinMs: number): Promise<boolean> {
  const { hostname, port } = new URL(address);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const over = new AbortController();
  const attempts = Array.from({ length: ATTEMPTS }, async (_, at) => {
    const apart = withinMs / ATTEMPTS;
    await delay(at * apart, undefined, { signal: over.signal });
    await attempt(host, Number(port), withinMs - at * apart);
  });
  try {
    await Promise.any(attempts);
    return true;
  } catch {
    return false;
  } finally {
    over.abort();
  }
}

function attempt(host: string, port: number, withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const inTime = afterRunning(withinMs, () => socket.destroy(new Error('no connection in time')));
    socket.on('error', reject).on('connect', () => {
      resolve();
      socket.destroy();
    });
    socket.on('close', inTime);
  });
}
