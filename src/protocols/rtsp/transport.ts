/** Transport of one track's media as the server gives it (RFC 2326 section 12.39). */
export interface TransportAnswer {
  readonly isTcp: boolean;
  /** Media does not come in the connection of the requests. */
  readonly isElsewhere: boolean;
  /** Channels of RTP and RTCP in the connection. */
  readonly channels: readonly [number, number] | undefined;
  /** Source address of packets, if it differs from the server's. */
  readonly source: string | undefined;
  /** The server's ports of RTP and RTCP. */
  readonly serverPorts: readonly [number, number] | undefined;
}

export function interleaved(channel: number): string {
  return `RTP/AVP/TCP;unicast;interleaved=${channel}-${channel + 1}`;
}

export function datagrams(port: number): string {
  return `RTP/AVP;unicast;client_port=${port}-${port + 1}`;
}

export function parseTransport(field: string): TransportAnswer {
  const [profile = '', ...parts] = field.split(';').map((part) => part.trim());
  const parameters = new Map(
    parts.map((part) => {
      const [name = '', value = ''] = part.split('=');
      return [name.trim().toLowerCase(), value.trim()];
    }),
  );
  const isTcp = profile.toUpperCase().endsWith('/TCP');
  return {
    isTcp,
    // some omit the transport that they were asked for, or its profile
    isElsewhere: profile !== '' && !isTcp && !parameters.has('interleaved'),
    channels: pairOf(parameters.get('interleaved'), 255),
    source: parameters.get('source'),
    serverPorts: pairOf(parameters.get('server_port'), 65_535),
  };
}

/** `a-b`, or `a` and the next. */
function pairOf(text: string | undefined, max: number): readonly [number, number] | undefined {
  const found = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text ?? '');
  if (found === null) return undefined;
  const first = Number(found[1]);
  const second = found[2] === undefined ? first + 1 : Number(found[2]);
  return first <= max && second <= max ? [first, second] : undefined;
}
