use super::*;
use proptest::prelude::*;

fn graph(ids: &[&str], edges: &[(&str, &str)]) -> Result<Graph, Cycles> {
    let at = |id: &str| u32::try_from(ids.iter().position(|other| *other == id).unwrap()).unwrap();
    let edges: Vec<(u32, u32)> = edges.iter().map(|(step, on)| (at(step), at(on))).collect();
    Graph::new(ids, &edges)
}

fn layers<'a>(graph: &Graph, ids: &[&'a str]) -> Vec<Vec<&'a str>> {
    let names = |layer: &Vec<u32>| layer.iter().map(|at| ids[*at as usize]).collect();
    graph.layers().iter().map(names).collect()
}

#[test]
fn a_step_stands_one_layer_after_its_last_dependency_and_layers_are_in_id_order() {
    let ids = ["z", "join", "b", "a", "late"];
    let graph = graph(
        &ids,
        &[("join", "a"), ("join", "b"), ("late", "join"), ("late", "z"), ("join", "a")],
    )
    .unwrap();
    assert_eq!(layers(&graph, &ids), [vec!["a", "b", "z"], vec!["join"], vec!["late"]]);
    assert_eq!(graph.edge_count(), 4);
    assert_eq!(graph.dependencies(1), [2, 3]);
    assert_eq!(graph.dependents(2), [1]);
    assert_eq!(graph.dependents(4), [0u32; 0]);
    assert_eq!(graph.layer_of(4), 2);
    assert_eq!(graph.position("late"), Some(4));
    assert_eq!(graph.position("z"), Some(0));
    assert_eq!(graph.position("absent"), None);
}

#[test]
fn nothing_is_a_graph_of_no_layers() {
    assert_eq!(Graph::new(&[], &[]).unwrap().layers(), [[0u32; 0]; 0]);
}

#[test]
fn a_cycle_is_named_in_the_order_its_steps_wait_for_each_other() {
    let ids = ["a", "b", "c", "d", "e"];
    let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("c", "e")];
    assert_eq!(graph(&ids, &edges), Err(Cycles(vec![vec![0, 1, 2]])));
    assert_eq!(graph(&ids, &[("a", "a")]), Err(Cycles(vec![vec![0]])));
    let two = [("a", "b"), ("b", "a"), ("d", "e"), ("e", "d")];
    assert_eq!(graph(&ids, &two), Err(Cycles(vec![vec![0, 1], vec![3, 4]])));
}

#[test]
fn dominators_lie_on_every_path() {
    let ids = ["root", "left", "right", "join", "end", "other"];
    let edges =
        [("left", "root"), ("right", "root"), ("join", "left"), ("join", "right"), ("end", "join")];
    let found = graph(&ids, &edges).unwrap().immediate_dominators();
    assert_eq!(found, [None, Some(0), Some(0), Some(0), Some(3), None]);
    let two_roots = graph(&ids, &[("join", "left"), ("join", "other"), ("end", "join")]).unwrap();
    assert_eq!(two_roots.immediate_dominators(), [None, None, None, None, Some(3), None]);
}

/// Random graphs without cycles: every step depends on earlier ones only.
fn any_graph() -> impl Strategy<Value = (Vec<String>, Vec<(u32, u32)>)> {
    (1usize..120).prop_flat_map(|count| {
        let ids = prop::collection::btree_set("[a-c_]{0,3}[a-z0-9]{1,4}", count..=count);
        let edges = prop::collection::vec((0..count, 0..count), 0..count * 3);
        (ids, edges).prop_map(|(ids, pairs)| {
            let before =
                |(a, b): (usize, usize)| (a != b).then(|| (position(a.max(b)), position(a.min(b))));
            // Reversed, so that document order is not id order.
            (ids.into_iter().rev().collect(), pairs.into_iter().filter_map(before).collect())
        })
    })
}

proptest! {
    #[test]
    fn layers_are_the_longest_paths_in_id_order((ids, edges) in any_graph()) {
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let graph = Graph::new(&names, &edges).unwrap();
        let mut longest = vec![0u32; ids.len()];
        for at in 0..ids.len() {
            for (_, on) in edges.iter().filter(|(step, _)| *step as usize == at) {
                longest[at] = longest[at].max(longest[*on as usize] + 1);
            }
            prop_assert_eq!(graph.layer_of(at), longest[at]);
            prop_assert_eq!(graph.position(names[at]), Some(at));
        }
        let mut count = 0;
        for (number, layer) in graph.layers().iter().enumerate() {
            prop_assert!(!layer.is_empty());
            prop_assert!(layer.windows(2).all(|pair| names[pair[0] as usize] < names[pair[1] as usize]));
            prop_assert!(layer.iter().all(|at| longest[*at as usize] as usize == number));
            count += layer.len();
        }
        prop_assert_eq!(count, ids.len());
    }

    #[test]
    fn a_back_edge_makes_a_cycle_that_really_is_one((ids, mut edges) in any_graph(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        edges.push((position(from.index(ids.len())), position(to.index(ids.len()))));
        if let Err(Cycles(cycles)) = Graph::new(&names, &edges) {
            prop_assert!(!cycles.is_empty());
            for cycle in cycles {
                for (at, step) in cycle.iter().enumerate() {
                    let next = cycle[(at + 1) % cycle.len()];
                    prop_assert!(edges.contains(&(position(*step), position(next))));
                }
            }
        }
    }

    #[test]
    fn radix_order_is_byte_order(ids in prop::collection::vec("(ab?c?|é)?[a-d]{0,6}", 0..300)) {
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let order: Vec<&str> = radix::sorted(&names).into_iter().map(|at| names[at as usize]).collect();
        let mut plain = names.clone();
        plain.sort_unstable();
        prop_assert_eq!(order, plain);
    }
}
