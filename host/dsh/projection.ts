/**
 * Contract: session projections, pushed to open pages. DSH session/session-projection (index.ts).
 * `{schema, view}` up to rc.8, `{stateSchema, wire: {viewSchema, view}}` from 0.1.1 on; one object carries both.
 * We rely on: `apply` is a pure fold over the log that answers the same reference when nothing changed;
 * a schema is asked for `parse` only. A throw of ours would reach the host's append, so there is none.
 */
import { markerOf } from '../../src/surface/marker.ts'
import { PROJECTION, type ProjectionView } from '../../src/protocol/requests.ts'
import type { Health } from './health.ts'
import type { ForeignEvent, HostContext } from './host-types.ts'

/** Raise it with any change of what the state means: the host keeps states on disk. */
const STATE_VERSION = 1

const empty: ProjectionView = { markers: [] }

/** A state read back from the host's cache that is not ours to understand counts as none. */
const lenient = {
  parse: (value: unknown): ProjectionView =>
    (Array.isArray((value as ProjectionView | null)?.markers) ? value as ProjectionView : empty),
}

/** The same state again for every event that is no marker of ours. */
export function foldMarker(state: ProjectionView, event: ForeignEvent): ProjectionView {
  const marker = markerOf(event)
  return marker === undefined ? state : { markers: [...state.markers, { ...marker }] }
}

/** Registers the projection where and when the host has projections. */
export function registerProjection(ctx: HostContext, health: Health): void {
  const apply = health.contain('projection', foldMarker)
  const view = (state: ProjectionView): ProjectionView => state
  ctx.inject(['sessionProjections'], health.contain('projection', (inner: HostContext) => {
    const projections = inner.get('sessionProjections') as { register: (definition: object) => unknown }
    inner.effect(() => projections.register({
      key: PROJECTION,
      stateVersion: STATE_VERSION,
      init: () => empty,
      apply: (state: ProjectionView, event: ForeignEvent) => apply(state, event) ?? state,
      schema: lenient,
      view,
      stateSchema: lenient,
      wire: { viewSchema: lenient, view },
    }), 'turnback: projection')
  }))
}
