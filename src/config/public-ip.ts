import { networkInterfaces } from 'node:os';
import { askStun } from './stun.ts';
import { parseEndpoint } from './values.ts';

const STUN_TIMEOUT_MS = 2000;

/** First IPv4 address of this machine that is not internal, else the loopback address. */
function ownAddress(): string {
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { family, internal, address } of addresses ?? []) {
      if (family === 'IPv4' && !internal) return address;
    }
  }
  return '127.0.0.1';
}

/**
 * Value of `${PublicIP}`: the address that the STUN server (`host:port`) sees. Without a server, or without an answer from it
 * (`warn` is called), an address of this machine.
 */
export async function publicAddress(stunServer: string | undefined, warn: (line: string) => void): Promise<string> {
  const server = stunServer === undefined ? undefined : parseEndpoint(stunServer);
  if (server === undefined) return ownAddress();
  try {
    return await askStun(server, STUN_TIMEOUT_MS);
  } catch (error) {
    const address = ownAddress();
    const fault = (error as Error).message;
    warn(`StunServer ${stunServer}: ${fault}; \${PublicIP} is ${address}, an address of this machine`);
    return address;
  }
}
