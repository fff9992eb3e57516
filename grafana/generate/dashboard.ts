/** Units as Grafana calls them. */
export type Unit =
  | 'bps'
  | 'bytes'
  | 's'
  | 'short'
  | 'none'
  | 'percentunit'
  | 'reqps'
  | 'cps'
  | 'rotfps'
  | 'pixel'
  | 'dateTimeFromNow'
  | 'bool_yes_no';

export interface Query {
  readonly expr: string;
  /** How a line is called: `{{label}}`. */
  readonly legend?: string;
}

export interface PanelSpec {
  readonly title: string;
  /** What it means, and from when on it is bad. */
  readonly about?: string;
  readonly kind?: 'timeseries' | 'stat' | 'table' | 'state-timeline';
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Of 24. */
  readonly width?: number;
  readonly stacked?: boolean;
  /** Where the colour changes: green below, then yellow, then red. */
  readonly limits?: readonly [yellow: number, red: number];
}

export interface RowSpec {
  readonly title: string;
  readonly panels: readonly PanelSpec[];
}

export const VARIABLES = ['instance', 'vhost', 'application', 'stream'] as const;
export type Variable = (typeof VARIABLES)[number];

export interface DashboardSpec {
  readonly uid: string;
  readonly title: string;
  readonly about: string;
  /** Besides the data source. */
  readonly variables: readonly Variable[];
  readonly rows: readonly RowSpec[];
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
const COLUMNS = 24;
const HEIGHTS = { timeseries: 8, stat: 4, table: 10, 'state-timeline': 8 } as const;
const WIDTHS = { timeseries: 12, stat: 4, table: 24, 'state-timeline': 12 } as const;

/** What a variable may be, by what nodes tell. */
const VALUES: Readonly<Record<Variable, string>> = {
  instance: 'label_values(kiln_node_info, instance)',
  vhost: 'label_values(kiln_application_received_bytes_total, vhost)',
  application: 'label_values(kiln_application_received_bytes_total{vhost=~"$vhost"}, application)',
  stream: 'label_values(kiln_stream_info{vhost=~"$vhost", application=~"$application"}, stream)',
};

/** A dashboard in the form that Grafana loads. */
export function dashboard({ uid, title, about, variables, rows }: DashboardSpec) {
  return {
    uid,
    title,
    description: about,
    tags: ['kiln'],
    timezone: 'browser',
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    links: [
      {
        type: 'dashboards',
        title: 'Kiln',
        tags: ['kiln'],
        asDropdown: true,
        includeVars: true,
        keepTime: true,
        targetBlank: false,
      },
    ],
    annotations: { list: [] },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} },
        ...variables.map(variable),
      ],
    },
    panels: layOut(rows),
  };
}

function variable(name: Variable) {
  return {
    name,
    label: name === 'vhost' ? 'Virtual host' : `${name[0]?.toUpperCase()}${name.slice(1)}`,
    type: 'query',
    datasource: DATASOURCE,
    query: { query: VALUES[name], refId: name },
    definition: VALUES[name],
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: ['All'], value: ['$__all'] },
  };
}

/** Rows from top to bottom, panels from left to right. */
function layOut(rows: readonly RowSpec[]): object[] {
  const panels: object[] = [];
  let y = 0;
  let id = 0;
  for (const { title, panels: specs } of rows) {
    panels.push({ id: ++id, type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 }, panels: [] });
    y++;
    let x = 0;
    let height = 0;
    for (const spec of specs) {
      const { kind = 'timeseries', width = WIDTHS[kind] } = spec;
      if (x + width > COLUMNS) {
        x = 0;
        y += height;
        height = 0;
      }
      panels.push(panel(++id, spec, { x, y, w: width, h: HEIGHTS[kind] }));
      x += width;
      height = Math.max(height, HEIGHTS[kind]);
    }
    y += height;
  }
  return panels;
}

function panel(id: number, spec: PanelSpec, gridPos: object) {
  const { title, about = '', kind = 'timeseries', unit, queries, stacked = false, limits } = spec;
  const isNow = kind === 'stat' || kind === 'table';
  return {
    id,
    type: kind,
    title,
    description: about,
    gridPos,
    datasource: DATASOURCE,
    targets: queries.map(({ expr, legend = '' }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
      instant: isNow,
      range: !isNow,
      ...(kind === 'table' && { format: 'table' }),
    })),
    fieldConfig: {
      defaults: {
        unit,
        min: unit === 'dateTimeFromNow' ? undefined : 0,
        ...(limits && {
          thresholds: {
            mode: 'absolute',
            steps: [
              { color: 'green', value: null },
              { color: 'yellow', value: limits[0] },
              { color: 'red', value: limits[1] },
            ],
          },
        }),
        ...(kind === 'timeseries' && {
          custom: {
            fillOpacity: stacked ? 30 : 8,
            lineWidth: 1,
            showPoints: 'never',
            stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
            thresholdsStyle: { mode: limits ? 'dashed' : 'off' },
          },
        }),
      },
      overrides: [],
    },
    options: OPTIONS[kind],
    ...(kind === 'table' && {
      transformations: [{ id: 'organize', options: { excludeByName: { Time: true, __name__: true, job: true } } }],
    }),
  };
}

const OPTIONS = {
  timeseries: {
    legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'], showLegend: true },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  stat: { reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, colorMode: 'value', graphMode: 'area' },
  table: { showHeader: true, cellHeight: 'sm' },
  'state-timeline': { showValue: 'never', mergeValues: true, legend: { displayMode: 'list', placement: 'bottom' } },
} as const;
