import Type from 'typebox';
import type { Transport } from '../../lib/address.ts';
import { atLeastOne, contained, flag, optional, parsed, repeated, text } from '../blocks.ts';
import { parseEndpoint, parseNetworks, parsePortOf, parsePortRanges, parseUrl } from '../values.ts';

export const portOf = (transport: Transport) => parsed('a port (1..65535)', (given) => parsePortOf(given, transport));

export const portList = (transport: Transport) =>
  parsed('a list of ports (1..65535), such as 4000-4003,4005', (given) => parsePortRanges(given, transport));

export const endpoint = () => parsed('a host:port', parseEndpoint);

const NETWORKS = 'a comma list of networks, such as 10.0.0.0/8,::1';

/** Networks kept as text: the management API shows them. */
export const networkText = () => parsed(NETWORKS, (given) => (parseNetworks(given) ? given : undefined));

/** Parses networks; an empty text has none. @param value default; without one the element is required */
export const networks = (value?: string) => {
  const options = value === undefined ? {} : { default: parseNetworks(value) };
  return parsed(NETWORKS, (given) => (given === '' ? [] : parseNetworks(given)), options);
};

export const httpUrl = () => parsed('an http or https URL', (given) => parseUrl(given, ['http', 'https']));

/** Kept as text: it may hold macros. */
export const httpUrlText = () =>
  parsed('an http or https URL', (given) => (parseUrl(given, ['http', 'https']) === undefined ? undefined : given));

/** Kept as text: the management API shows it. */
export const httpUrls = () =>
  parsed('an http or https URL, or several with commas between them', (given) =>
    given.split(',').every((url) => parseUrl(url.trim(), ['http', 'https'])) ? given : undefined,
  );

/** A token, and a field value (RFC 9110 5.6.2 and 5.5): nothing else can be sent. */
const headerName = () => text({ is: 'a name of an HTTP header', pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" });
const headerValue = () =>
  text({ is: 'a value of an HTTP header', pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$', default: '' });

/** Origins that CORS permits, and headers added to answers for them. */
export const crossDomains = () =>
  optional({
    url: repeated(text()),
    header: repeated(Type.Object({ key: headerName(), value: headerValue() })),
  });

export const tlsFiles = () => ({ certPath: text(), keyPath: text(), chainCertPath: Type.Optional(text()) });

export const tls = () => optional(tlsFiles());

/** Modules that an access control guards: comma-separated names, empty for none. */
export const enables = () => optional({ providers: text({ default: '' }), publishers: text({ default: '' }) });

/** A file that maps streams to targets (recording, pushing). */
export const streamMapFile = () => optional({ enable: flag(false), path: text({ default: '' }) });

/** Kept as text: the management API shows it. `byteCount` reads it. */
export const byteSize = () => text({ is: 'a number of bytes, such as 800M or 2G', pattern: '^\\d{1,12}[KMGkmg]?$' });

export const hostNames = () => atLeastOne(contained(text(), 'Name'));

/** Names that stand in URLs of the management API: there `/` separates names and `:` begins an action. */
export const objectName = () => text({ is: 'a name (text without / and :)', pattern: '^[^/:]+$' });

/** A colon would end a name in Basic credentials (RFC 7617 section 2). */
export const userName = () => text({ is: 'a name (text without : and ")', pattern: '^[^:"]+$' });
