import { StorageError } from '#cluster';
import type { ServerConfig } from '../config/model.ts';
import { listenerElement } from '../config/ports.ts';
import { hostInUrl } from '../lib/address.ts';
import { SrtError } from '../protocols/srt/error.ts';

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another program',
  EACCES: 'may not be opened by this user (ports below 1024 take root or CAP_NET_BIND_SERVICE)',
  EADDRNOTAVAIL: 'cannot be opened: this machine does not have the address',
};

type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

/**
 * Describes in one line why the server could not start, where the cause is the system and not a fault of Kiln:
 * `Bind/Providers/RTMP/Port: 0.0.0.0:1935 is in use by another program`. undefined for other errors.
 */
export function startFailure(error: unknown, config: ServerConfig): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', syscall, address, port, message } = error as SystemError;
  if (address !== undefined && port !== undefined) {
    const element = listenerElement(config, syscall === 'bind' ? 'udp' : 'tcp', port);
    const where = `${hostInUrl(address)}:${port}${syscall === 'bind' ? '/udp' : ''}`;
    return `${element === undefined ? '' : `${element}: `}${where} ${REASONS[code] ?? `cannot be opened: ${message}`}`;
  }
  const isForeseen = syscall !== undefined || error instanceof StorageError || error instanceof SrtError;
  return isForeseen ? message : undefined;
}
