/** A value of a `Link` header (RFC 8288): its target, and its parameters, of which some are quoted. */
const LINK = /<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";,]+))*)/g;
const PARAMETER = /;\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";,]+))/g;

/**
 * Reads the ICE servers that `Link` headers name (RFC 9725 section 4.6).
 * @param {string} links values, separated by commas
 * @returns {RTCIceServer[]}
 */
export function iceServersOf(links) {
  return [...links.matchAll(LINK)].flatMap(([, urls = '', parameters = '']) => {
    const { rel, username, credential } = Object.fromEntries(
      [...parameters.matchAll(PARAMETER)].map(([, name = '', quoted, plain]) => [
        name.toLowerCase(),
        quoted?.replaceAll(/\\(.)/g, '$1') ?? plain,
      ]),
    );
    if (rel !== 'ice-server') return [];
    return [username === undefined ? { urls } : { urls, username, credential }];
  });
}

/**
 * Has a connection use the ICE servers of an answer. They apply to candidates gathered from then on: call it before a local
 * description is set.
 * @param {RTCPeerConnection} peer
 * @param {Headers} headers
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
