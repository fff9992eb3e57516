/** A value of a `Link` header (RFC 8288): what it names, and its parameters, of which some are quoted. */
const LINK = /<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]+))*)/g;
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]+))/g;

/** The ICE servers that `Link` headers name, as a browser is told of them (RFC 9725 section 4.6). */
export function iceServersOf(links) {
  return [...links.matchAll(LINK)].flatMap(([, urls, parameters]) => {
    const { rel, username, credential } = Object.fromEntries(
      [...parameters.matchAll(PARAMETER)].map(([, name, quoted, plain]) => [
        name.toLowerCase(),
        quoted?.replaceAll(/\\(.)/g, '$1') ?? plain,
      ]),
    );
    if (rel !== 'ice-server') return [];
    return [username === undefined ? { urls } : { urls, username, credential }];
  });
}

/**
 * Has a connection use the ICE servers that an answer names. They are used by what is gathered from then on: no local
 * description may be set before.
 */
export function useIceServers(peer, headers) {
  const iceServers = iceServersOf(headers.get('link') ?? '');
  if (iceServers.length === 0) return;
  try {
    peer.setConfiguration({ ...peer.getConfiguration(), iceServers });
  } catch (error) {
    // most reach the server without them
    reportError(error);
  }
}
