import { isIP } from 'node:net';
import type { Logger } from '../log/log.ts';

/** Replacements for addresses and ports of clients with PrivacyProtection (OvenMediaEngine's manual, "Configuration"). */
const ADDRESS = 'xxx.xxx.xxx.xxx';
const PORT = 'xxx';

/** Masks a client's address, with or without its port. */
export function masked(remote: string): string {
  return isIP(remote) === 0 && /:\d+$/.test(remote) ? `${ADDRESS}:${PORT}` : ADDRESS;
}

/** A log without addresses of clients. Lines have them in `remote`, and those of failed requests in `req`. */
export function withoutAddresses(log: Logger): Logger {
  return log.child(
    {},
    {
      serializers: {
        remote: (remote: unknown) => (typeof remote === 'string' ? masked(remote) : remote),
        req: ({ method, url }: { readonly method?: string; readonly url?: string }) => ({ method, url }),
      },
    },
  );
}
