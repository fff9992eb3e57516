import { counter, type Family } from './family.ts';

/** How often something was found to be wrong with streams, and could not be told. */
export interface AlertCounts {
  /** How often each code was raised so far. */
  readonly raised: ReadonlyMap<string, number>;
  /** How many alerts to the server of `<Alert>` were given up so far. */
  readonly undelivered: () => number;
}

/** What this node found to be wrong with its streams. */
export function alertFamilies({ raised, undelivered }: AlertCounts): Family[] {
  return [
    counter('kiln_alerts_total', 'Alerts that were raised, by code, whether or not they are sent anywhere.', () =>
      Array.from(raised, ([code, value]) => ({ labels: { code }, value })),
    ),
    counter(
      'kiln_alerts_undelivered_total',
      'Alerts that the server of Alert/Url never got: it refused them, or was away while too many waited.',
      undelivered,
    ),
  ];
}
