import { isIP } from 'node:net';
import type { Logger } from '../log/log.ts';

/** What stands for the address of any client, and for its port, with PrivacyProtection (OvenMediaEngine, "Configuration"). */
const ADDRESS = 'xxx.xxx.xxx.xxx';
const PORT = 'xxx';

/** What is shown instead of a client's address, with or without its port. */
export function masked(remote: string): string {
  return isIP(remote) === 0 && /:\d+$/.test(remote) ? `${ADDRESS}:${PORT}` : ADDRESS;
}

/** A log that tells no client's address. Lines have it in `remote`, and those of failed requests in `req`. */
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
