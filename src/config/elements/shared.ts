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

/** An empty text is no network. @param value what is taken where nothing is given; else it must be */
export const networks = (value?: string) => {
  const options = value === undefined ? {} : { default: parseNetworks(value) };
  return parsed(NETWORKS, (given) => (given === '' ? [] : parseNetworks(given)), options);
};

export const httpUrl = () => parsed('an http or https URL', (given) => parseUrl(given, ['http', 'https']));

/** Kept as text: the management API shows it. */
export const httpUrls = () =>
  parsed('an http or https URL, or several with commas between them', (given) =>
    given.split(',').every((url) => parseUrl(url.trim(), ['http', 'https'])) ? given : undefined,
  );

/** CORS: origins that may call, and headers added to their answers. */
export const crossDomains = () =>
  optional({
    url: repeated(text()),
    header: repeated(Type.Object({ key: text(), value: text({ default: '' }) })),
  });

/** PEM files of a certificate that this server shows. */
export const tlsFiles = () => ({ certPath: text(), keyPath: text(), chainCertPath: Type.Optional(text()) });

export const tls = () => optional(tlsFiles());

/** Which modules an access control guards: comma lists of names, empty for none. */
export const enables = () => optional({ providers: text({ default: '' }), publishers: text({ default: '' }) });

/** A file that maps streams to targets (recording, pushing). */
export const streamMapFile = () => optional({ enable: flag(false), path: text({ default: '' }) });

export const hostNames = () => atLeastOne(contained(text(), 'Name'));

/** Of what the management API addresses by URL: `/` parts names there, `:` begins an action. */
export const objectName = () => text({ is: 'a name (text without / and :)', pattern: '^[^/:]+$' });
